package report

import (
	"encoding"
	"encoding/json"
	"reflect"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/plan"
)

// A comment may be built from another process's report. A field that is lost on the way would hide a break or a hold from the user.
// This test fails if JSON omits a new field.
func TestSend(t *testing.T) {
	step := Step{definition: true, active: true, approvable: true, key: "a", before: "b", rulings: []ruled{{"g", "C", plan.Look, 2, "t"}}, excused: true, restated: true, placed: true, closes: true, claims: []approval.Ask{{Claim: approval.Claim{Guard: "schema", Wants: "e"}}}}
	known := map[string]bool{"definition": true, "active": true, "approvable": true, "key": true, "before": true, "rulings": true, "alters": true, "excused": true, "claims": true, "restated": true, "placed": true, "closes": true}
	seen := map[reflect.Type]bool{}
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		whole := of.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()) || of.Implements(reflect.TypeFor[encoding.TextMarshaler]())
		if of.Kind() != reflect.Struct || seen[of] || whole {
			return
		}
		seen[of] = true
		for i := range of.NumField() { //nolint:modernize // the index names a path
			f := of.Field(i)
			carried := of == reflect.TypeFor[Step]() && known[f.Name] || of == reflect.TypeFor[plan.Bump]() && f.Name == "Package" || of == reflect.TypeFor[Report]() && (f.Name == "rulings" || f.Name == "SupersededBy") // no other process reports on commits
			if !carried && (!f.IsExported() || f.Tag.Get("json") == "-") {
				t.Errorf("%s.%s does not reach another process: Send has to take it along", of, f.Name)
			}
			check(f.Type)
		}
	}
	check(reflect.TypeFor[Report]())
	if !seen[reflect.TypeFor[plan.Bump]()] || len(seen) < 15 {
		t.Errorf("%d types were checked: %v", len(seen), seen)
	}
	raw, err := Send(Report{Kind: "Report", Steps: []Step{step, {}}, Upgrades: []Step{{}, step}, Bumps: []plan.Bump{{Package: "p"}}, rulings: step.rulings})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Receive(raw)
	if err != nil || !reflect.DeepEqual(got.Steps, []Step{step, {}}) || !reflect.DeepEqual(got.Upgrades, []Step{{}, step}) || got.Bumps[0].Package != "p" || !reflect.DeepEqual(got.rulings, step.rulings) {
		t.Errorf("Receive: %+v, %v", got, err)
	}
}
