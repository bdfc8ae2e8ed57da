package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A storing describes a CRD of a definition, with the versions in which its objects may be stored.
type storing struct {
	name     string
	versions []string
}

// storedVersions returns the versions in which objects of a definition may be stored. For a CRD that was not read, it asks for the
// versions, but only if the update may make objects unreadable: if it declares fewer versions, or drops a conversion webhook.
func storedVersions(s plan.Step, c draft.Case, after *unstructured.Unstructured) (have []storing, all question.State) {
	if s.ID.IsCRD() && c.Seen.Stance.In(plan.OnCluster) {
		versions, _, _ := unstructured.NestedStringSlice(s.Live.Object, "status", "storedVersions")
		return []storing{{s.ID.Name, versions}}, all
	}
	if !dropsWebhook(s.Live, after) && !removesVersions(s.Live, after) {
		return nil, all
	}
	for _, crd := range facts.CRDsOf(s.Live) {
		versions, is := question.Get(c.Seen.Known(), question.Stored{Of: crd})
		if is.Known() {
			have = append(have, storing{crd.Name, versions})
		}
		all = all.And(is)
	}
	return have, all
}

// stored holds an update that drops the conversion webhook of a definition while objects are stored in another version than the
// storage version. It also holds the update if the stored versions cannot be read. The guard impossible handles the removal of
// versions that are known to be stored.
func stored(s plan.Step, c draft.Case) plan.Ruling {
	if !redefines(s) {
		return allowed
	}
	after, err := s.WillBe()
	if err != nil {
		return allowed // Err holds the reason
	}
	drops := dropsWebhook(s.Live, after)
	have, are := storedVersions(s, c, after)
	switch {
	case are.Unseen && crossplane.IsMRD(s.ID) && !isMade(s, c): // objects cannot be stored
		return allowed
	case are.Unseen && drops:
		return noted(reason.WebhookUnseen.With())
	case are.Unseen:
		return noted(reason.VersionsUnseen.With())
	case are.Open:
		return asks(approval.Storage, approval.Amount{}, reason.StoredNotRead.With())
	case are.Err != nil:
		return asks(approval.Storage, approval.Amount{}, reason.StoredUnknown.With(reason.Of(are.Err)))
	case !drops:
		return allowed
	}
	_, storage := versionsOf(after)
	for _, crd := range have {
		others := slices.DeleteFunc(slices.Clone(crd.versions), func(v string) bool { return v == storage })
		if len(others) > 0 {
			return asks(approval.Storage, approval.Amount{}, reason.WebhookStillNeeded.With(others, storage))
		}
	}
	return allowed
}

func dropsWebhook(before, after *unstructured.Unstructured) bool {
	return facts.HasWebhook(before) && !facts.HasWebhook(after)
}

func removesVersions(before, after *unstructured.Unstructured) bool {
	was, _ := versionsOf(before)
	is, _ := versionsOf(after)
	return slices.ContainsFunc(was, func(v string) bool { return !slices.Contains(is, v) })
}

// versionsOf returns the declared versions of a definition, and its storage version. For an XRD, that is the version that
// compositions may refer to.
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
