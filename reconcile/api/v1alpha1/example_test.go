package v1alpha1_test

import (
	"fmt"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Validate returns every problem, each with the path of its field.
func ExampleSync_Validate() {
	sync := v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate-system", Name: "platform"}}
	sync.Spec.Source = v1alpha1.Source{Repo: "https://git.example.org/platform.git", Path: "../other"}
	sync.Spec.Approvals.Approvers = []string{"alice", "bob b"}
	sync.Default()
	fmt.Println(sync.Validate())
	// Output:
	// spec.source.path: must be a directory of the repository, relative to its root, not "../other"
	// spec.approvals.approvers[1]: "bob b" is not a user name of a forge
}
