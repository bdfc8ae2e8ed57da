package approval_test

import (
	"fmt"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/render/manifest"
)

// A person approves a digest. It is of one guard, one action and one object with its content, so the same question has the same
// digest in every cluster, and another content needs another approval.
func ExampleClaim_Digest() {
	grants := approval.Claim{
		Guard: "grants", Action: "update",
		Of:    manifest.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "deployers"},
		Wants: "the digest of three rules",
	}
	again := grants
	fmt.Println("the same change:", again.Digest() == grants.Digest())
	again.Wants = "the digest of four rules"
	fmt.Println("other content:", again.Digest() == grants.Digest())
	// Output:
	// the same change: true
	// other content: false
}
