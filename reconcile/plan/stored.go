package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stored holds an update after which nobody could read what is stored: of a CRD, or an MRD,
// that does not declare a version any more in which objects are stored, and of one that loses
// its conversion webhook while objects are stored in another version than the one it stores.
func stored(s Step, c Case) Ruling {
	after, err := s.willBe()
	if err != nil {
		return allowed // which Err says
	}
	drops := hasWebhook(s.Live) && !hasWebhook(after)
	declared, storage := versionsOf(after)
	before, _ := versionsOf(s.Live)
	removes := slices.ContainsFunc(before, func(v string) bool { return !slices.Contains(declared, v) })
	versions, _, _ := unstructured.NestedStringSlice(s.Live.Object, "status", "storedVersions")
	if (!s.ID.IsCRD() || c.Seen.Offline) && (drops || removes) {
		q := Question{Ask: Stored, Of: CRD(s.ID.Name)}
		a, answered := c.Seen.Answers[q]
		switch {
		case !answered && c.Seen.Offline && drops:
			return Ruling{Reason: "its conversion webhook is dropped; whether objects are stored in another version is not known without a cluster", Needs: []Question{q}}
		case !answered && c.Seen.Offline:
			return Ruling{Reason: "it declares fewer versions; whether objects are stored in one that goes is not known without a cluster", Needs: []Question{q}}
		case !answered:
			r := held("it has not been read in which versions objects are stored")
			r.Needs = []Question{q}
			return r
		case a.Unknown != "":
			return held("its versions, or its conversion webhook, would go, and it cannot be read in which versions objects are stored (%s)", a.Unknown)
		}
		versions = strings.Fields(a.Example)
	}
	undeclared := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return slices.Contains(declared, v) })
	others := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == storage })
	switch {
	case len(undeclared) > 0:
		return held("objects may be stored in %s, which it does not declare any more: declare it, or migrate them to %s and take it out of status.storedVersions",
			strings.Join(undeclared, ", "), storage)
	case drops && len(others) > 0:
		return held("its conversion webhook would be dropped, and objects may be stored in %s, which nobody could read then: "+
			"set conversion: Inject, or migrate them to %s and take it out of status.storedVersions", strings.Join(others, ", "), storage)
	}
	return allowed
}

// hasWebhook says whether a CRD, or an MRD, is converted by a webhook.
func hasWebhook(u *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// versionsOf are the versions that a CRD, or an MRD, declares, and the one that is stored.
func versionsOf(u *unstructured.Unstructured) (declared []string, storage string) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	items, _ := list.([]any)
	for _, item := range items {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		declared = append(declared, name)
		if v["storage"] == true {
			storage = name
		}
	}
	return declared, storage
}
