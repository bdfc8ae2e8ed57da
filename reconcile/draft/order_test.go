package draft_test

import (
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Dependencies are applied before their dependants and pruned after them.
func TestTiers(t *testing.T) {
	const extensions, pkg = "apiextensions.crossplane.io", "pkg.crossplane.io"
	inOrder := [][]manifest.ID{
		{{Kind: "Namespace"}, plan.CRD("")},
		{{Kind: "Secret"}, {Kind: "ConfigMap"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: pkg, Kind: "ImageConfig"}, {Group: pkg, Kind: "DeploymentRuntimeConfig"}},
		{{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}},
		{crossplane.MRD(""), crossplane.MRAP("")},
		{{Group: pkg, Kind: "Provider"}, {Group: pkg, Kind: "Function"}},
		{{Group: pkg, Kind: "Configuration"}},
		{{Group: extensions, Kind: "CompositeResourceDefinition"}},
		{{Group: extensions, Kind: "Composition"}, {Group: "aws.m.example.org", Kind: "ClusterProviderConfig"}},
		{{Group: "s3.aws.m.example.org", Kind: "Bucket"}, {Group: "platform.example.org", Kind: "Store"}},
		{{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}},
	}
	var applied, pruned []int
	for _, ids := range inOrder {
		for _, id := range ids {
			applied = append(applied, plan.Step{ID: id, Action: plan.Create}.Tier())
			pruned = append(pruned, -plan.Step{ID: id, Action: plan.Prune}.Tier())
		}
		if first := (plan.Step{ID: ids[0], Action: plan.Create}).Tier(); slices.ContainsFunc(ids, func(id manifest.ID) bool { return plan.Step{ID: id, Action: plan.Create}.Tier() != first }) {
			t.Errorf("%v are not of one tier", ids)
		}
	}
	if !slices.IsSorted(applied) || !slices.IsSorted(pruned) {
		t.Errorf("tiers are not in order: %v, pruned %v", applied, pruned)
	}
	if slices.Max(applied) >= -slices.Max(pruned) {
		t.Error("prunes come after everything else")
	}
}
