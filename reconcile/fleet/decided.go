package fleet

import (
	"encoding/json"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/target"
)

// Decided returns the entries of the audit log for what people decided between two states of a Sync. before is nil if this process has not
// seen the Sync before.
func Decided(before, now *v1alpha1.Sync) []audit.Entry {
	if before == nil {
		before = &v1alpha1.Sync{}
	}
	of := audit.Entry{Sync: target.NameOf(*now).String()}
	var all []audit.Entry
	if before.Spec.Suspend != now.Spec.Suspend {
		all = append(all, suspension(of, now.Spec))
	}
	if of.Settings = changed(*before, *now); len(of.Settings) > 0 {
		of.Event = audit.Configured
		all = append(all, of)
	}
	return all
}

// suspension returns the entry for a Sync that is suspended from now on, or no longer.
func suspension(e audit.Entry, of v1alpha1.Spec) audit.Entry {
	e.Event = audit.Resumed
	if of.Suspend {
		e.Event = audit.Suspended
		if s := of.Suspension; s != nil {
			e.By, e.Reason = s.By, s.Why
		}
	}
	return e
}

// harmless are the fields that change neither what a Sync applies, nor what it may do, nor what a person has to approve. Any other field is
// recorded, also a new one.
var harmless = []string{
	"spec.suspend", "spec.suspension", // they have events of their own
	"spec.interval", "spec.timeout", "spec.fullCheckInterval", "spec.source.interval", "spec.source.fetchTimeout",
	"spec.pageURL", "spec.clusterName",
}

// changed returns the settings that differ between two states of a Sync. A value that is the default is "".
func changed(before, now v1alpha1.Sync) []audit.Setting {
	initial, was, is := settings(v1alpha1.Sync{}), settings(before), settings(now)
	var all []audit.Setting
	for _, values := range []map[string]string{was, is} {
		for field := range values {
			if was[field] != is[field] && !slices.Contains(harmless, field) && !slices.ContainsFunc(all, func(s audit.Setting) bool { return s.Field == field }) {
				all = append(all, audit.Setting{Field: field, Was: unless(was[field], initial[field]), Is: unless(is[field], initial[field])})
			}
		}
	}
	slices.SortFunc(all, func(a, b audit.Setting) int { return strings.Compare(a.Field, b.Field) })
	return all
}

func unless(value, initial string) string {
	if value == initial {
		return ""
	}
	return value
}

// settings returns the fields of a Sync as JSON, with the defaults of those that are left out.
func settings(s v1alpha1.Sync) map[string]string {
	with := s.DeepCopy()
	with.Default()
	all := map[string]string{}
	fieldsOf(all, "spec", with.Spec)
	fieldsOf(all, "spec.source", with.Spec.Source)
	delete(all, "spec.source")
	return all
}

// fieldsOf adds the fields of a struct as JSON.
func fieldsOf(all map[string]string, of string, value any) {
	var fields map[string]json.RawMessage
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	for field, text := range fields {
		all[of+"."+field] = string(text)
	}
}
