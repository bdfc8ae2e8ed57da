package guard

import (
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A storing CRD is one that a definition makes, and the versions in which its objects may be stored.
type storing struct {
	name     string
	versions []string
}

// storedVersions returns the versions in which objects of a definition may be stored. It asks for those
// of a CRD that is not at hand, and only where the update may leave objects that nobody can read: where it
// declares fewer versions, or drops a conversion webhook. Without the answers, needs names the questions;
// unknown is why one cannot be answered.
func storedVersions(s plan.Step, c plan.Case, after *unstructured.Unstructured) (have []storing, needs []plan.Question, unknown string) {
	if s.ID.IsCRD() && !c.Seen.Offline {
		versions, _, _ := unstructured.NestedStringSlice(s.Live.Object, "status", "storedVersions")
		return []storing{{s.ID.Name, versions}}, nil, ""
	}
	if !dropsWebhook(s.Live, after) && !removesVersions(s.Live, after) {
		return nil, nil, ""
	}
	for _, crd := range plan.CRDsOf(s.Live) {
		q := plan.Question{Ask: plan.Stored, Of: crd}
		switch a, answered := c.Seen.Answers[q]; {
		case !answered:
			needs = append(needs, q)
		case a.Unknown != "":
			unknown = a.Unknown
		default:
			have = append(have, storing{crd.Name, strings.Fields(a.Example)})
		}
	}
	return have, needs, unknown
}

// stored holds an update of a definition that loses its conversion webhook while objects are stored in
// another version than the one that it stores, and one of which that cannot be read. Versions that leave
// are the business of the guard impossible once it is known that they are stored.
func stored(s plan.Step, c plan.Case) plan.Ruling {
	after, err := s.WillBe()
	if err != nil {
		return allowed // which Err says
	}
	drops := dropsWebhook(s.Live, after)
	have, needs, unknown := storedVersions(s, c, after)
	switch {
	case len(needs) > 0 && c.Seen.Offline && drops:
		return plan.Ruling{Reason: text("its conversion webhook is dropped; whether objects are stored in another version is not known without a cluster"), Needs: needs}
	case len(needs) > 0 && c.Seen.Offline:
		return plan.Ruling{Reason: text("it declares fewer versions; whether objects are stored in one that goes is not known without a cluster"), Needs: needs}
	case len(needs) > 0:
		r := held(text("it has not been read in which versions objects are stored"))
		r.Needs = needs
		return r
	case unknown != "":
		return held(text("its versions, or its conversion webhook, would go, and it cannot be read in which versions objects are stored (%s)", unknown))
	case !drops:
		return allowed
	}
	_, storage := versionsOf(after)
	for _, crd := range have {
		others := slices.DeleteFunc(slices.Clone(crd.versions), func(v string) bool { return v == storage })
		if len(others) > 0 {
			return held(text("its conversion webhook would be dropped, and objects may be stored in %s, which nobody could read then: "+
				"set conversion: Inject, or migrate them to %s and take it out of status.storedVersions", strings.Join(others, ", "), storage))
		}
	}
	return allowed
}

func dropsWebhook(before, after *unstructured.Unstructured) bool {
	return plan.HasWebhook(before) && !plan.HasWebhook(after)
}

func removesVersions(before, after *unstructured.Unstructured) bool {
	was, _ := versionsOf(before)
	is, _ := versionsOf(after)
	return slices.ContainsFunc(was, func(v string) bool { return !slices.Contains(is, v) })
}

// versionsOf are the versions that a definition declares, and the one that is stored: of an XRD that is
// the one that compositions may refer to.
func versionsOf(u *unstructured.Unstructured) (declared []string, storage string) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	items, _ := list.([]any)
	for _, item := range items {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		declared = append(declared, name)
		if v["storage"] == true || v["referenceable"] == true {
			storage = name
		}
	}
	return declared, storage
}
