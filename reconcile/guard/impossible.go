package guard

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// impossible holds an update of a definition that no approval helps: an API server refuses it for as long as the
// definition exists: another scope, a name that cannot change, or a version that leaves although
// objects may be stored in it. This covers the updates that Crossplane makes when a package is updated.
func impossible(s plan.Step, c plan.Case) plan.Ruling {
	if s.Action != plan.Update || s.Live == nil || !plan.DeclaresKind(s.ID) {
		return allowed
	}
	for _, b := range s.Schema().Breaking() {
		switch {
		case b.Rule == schema.Scope && !neverServed(s.Live):
			return held(text("its scope would change from %s to %s, which %s. "+revert, b.From, b.To, refusesFor(s)))
		case b.Rule == schema.Names && !(neverServed(s.Live) && b.Path == "names.kind"):
			return held(text("its %s would change from %s to %s, which %s. "+revert, b.Path, plan.OrNone(b.From), plan.OrNone(b.To), refusesFor(s)))
		}
	}
	after, err := s.WillBe()
	if err != nil {
		return allowed // Err holds the reason
	}
	have, needs, _ := storedVersions(s, c, after)
	if len(needs) > 0 {
		return plan.Ruling{Needs: needs} // until they are answered guard schema holds it, which may be approved
	}
	for _, crd := range have {
		declared, _ := versionsOf(after)
		gone := slices.DeleteFunc(slices.Clone(crd.versions), func(v string) bool { return slices.Contains(declared, v) })
		if len(gone) > 0 {
			return held(text("it no longer declares %s, which status.storedVersions of the CRD %s names: objects may be stored in it. %s",
				strings.Join(gone, ", "), crd.name, migrate(s.Live, after, crd.name, gone)))
		}
	}
	return allowed
}

const revert = "Revert that, or delete the definition once nothing uses it"

// refusesFor names who refuses a change for as long as the definition exists.
func refusesFor(s plan.Step) string {
	return fmt.Sprintf("the API server refuses while the %s exists", s.ID.Kind)
}

// migrate tells how objects leave versions that a definition is not to declare any more.
func migrate(live, after *unstructured.Unstructured, crd string, gone []string) string {
	declared, to := versionsOf(after)
	_, from := versionsOf(live)
	first := "Declare " + strings.Join(gone, ", ") + " again"
	if slices.Contains(gone, from) { // else they would be written back in the same version
		first += ", with " + to + " as the storage version"
	}
	left := slices.DeleteFunc(slices.Clone(declared), func(v string) bool { return v != to })
	return fmt.Sprintf("%s. Then write every object back unchanged (kubectl get %s -A -o yaml | kubectl replace -f -), and take the version out of the status: "+
		`kubectl patch crd %s --subresource=status --type=merge -p '{"status":{"storedVersions":["%s"]}}'`, first, crd, crd, strings.Join(left, `","`))
}
