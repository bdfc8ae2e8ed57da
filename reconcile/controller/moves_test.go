package controller

import (
	"testing"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A prune waits for a Sync of another shard until its status shows the commit. What shows another spec, or no plan, must not end the wait.
func TestElsewhere(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: kind}
	}
	member := reconcile.Member{Repository: "git.example.org/platform", Ref: "main"}
	moves := &v1alpha1.Moves{Revision: "new", Takes: []string{"ConfigMap/team/moves"}, Gives: []string{"ConfigMap/team/leaves"}}
	planned := reconcile.Elsewhere{Member: member, Planned: "new", Moves: reconcile.Moves{Takes: moves.Takes, Gives: moves.Gives}}
	far := func(cluster, planned string) reconcile.Elsewhere {
		to := member
		to.Cluster = cluster
		return reconcile.Elsewhere{Member: to, Planned: planned}
	}
	remote := func(cluster string) func(s *v1alpha1.Sync) {
		return func(s *v1alpha1.Sync) {
			s.Spec.KubeConfig, s.Status.Moves = &v1alpha1.KubeConfig{}, &v1alpha1.Moves{Revision: "new", Cluster: cluster}
		}
	}
	cases := map[string]struct {
		reason string
		change func(s *v1alpha1.Sync)
		want   reconcile.Elsewhere
		none   bool
	}{
		"New":     {reason: "It has planned nothing.", change: func(s *v1alpha1.Sync) { s.Status = v1alpha1.Status{} }, want: reconcile.Elsewhere{Member: member}},
		"Planned": {reason: "The commit is known.", change: func(*v1alpha1.Sync) {}, want: planned},
		"More":    {reason: "Not all is known.", change: func(s *v1alpha1.Sync) { s.Status.Moves = &v1alpha1.Moves{Revision: "new", More: 1} }, want: reconcile.Elsewhere{Member: member, Planned: "new", More: true}},
		"Edited":  {reason: "Another path declares other objects.", change: func(s *v1alpha1.Sync) { s.Generation++ }, want: reconcile.Elsewhere{Member: member}},
		"Failed": {reason: "It could not plan a newer commit.", change: func(s *v1alpha1.Sync) {
			s.Status.LastAttemptedRevision = "newer"
			s.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse)}
		}, want: reconcile.Elsewhere{Member: member, Planned: "new", Moves: reconcile.Moves{Takes: moves.Takes, Gives: moves.Gives}, Tried: "newer", Broken: "Ready"}},
		"FailedLater": {reason: "The plan is known, whatever became of it.", change: func(s *v1alpha1.Sync) {
			s.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse)}
		}, want: planned},
		"Stalled": {reason: "It does not run.", change: func(s *v1alpha1.Sync) {
			s.Status.Conditions = []metav1.Condition{condition("Stalled", metav1.ConditionTrue)}
		}, want: reconcile.Elsewhere{Member: member, Planned: "new", Moves: reconcile.Moves{Takes: moves.Takes, Gives: moves.Gives}, Broken: "Stalled"}},
		"Suspended": {reason: "It takes over nothing.", change: func(s *v1alpha1.Sync) { s.Spec.Suspend = true }, none: true},
		"Observes":  {reason: "It takes over nothing.", change: func(s *v1alpha1.Sync) { s.Spec.ManagementPolicy = v1alpha1.PolicyObservable }, none: true},
		"Remote":    {reason: "It may apply to this cluster, by another address.", change: func(s *v1alpha1.Sync) { s.Spec.KubeConfig, s.Status = &v1alpha1.KubeConfig{}, v1alpha1.Status{} }, want: far(reconcile.AnyCluster, "")},
		"Far":       {reason: "It applies to another cluster.", change: remote("uid"), want: far("uid", "new")},
		"Near":      {reason: "It applies to this cluster.", change: remote(thisCluster), want: far("", "new")},
		"Old":       {reason: "An older version does not show the cluster.", change: remote(""), want: far(reconcile.AnyCluster, "new")},
		"NotKnown":  {reason: "Its account may not read which cluster it is.", change: remote(reconcile.AnyCluster), want: far(reconcile.AnyCluster, "new")},
		"Flux": {reason: "Only the status names the repository.", change: func(s *v1alpha1.Sync) {
			s.Spec.Source = v1alpha1.Source{SourceRef: &v1alpha1.SourceRef{Kind: "GitRepository", Name: "a", Namespace: "b"}}
			s.Status.Moves = &v1alpha1.Moves{Revision: "new", Branch: "main", Repository: "git.example.org/platform"}
		}, want: reconcile.Elsewhere{Member: reconcile.Member{Repository: "git.example.org/platform", Flux: true}, Planned: "new", Branch: "main"}},
		"FluxNew": {reason: "Nobody has read the source yet.", change: func(s *v1alpha1.Sync) {
			s.Spec.Source, s.Status = v1alpha1.Source{SourceRef: &v1alpha1.SourceRef{Kind: "GitRepository", Name: "a", Namespace: "b"}}, v1alpha1.Status{}
		}, want: reconcile.Elsewhere{Member: reconcile.Member{Repository: "GitRepository/b/a", Flux: true}}},
		"Ends": {reason: "It takes over nothing.", change: func(s *v1alpha1.Sync) { s.DeletionTimestamp = new(metav1.Now()) }, none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := v1alpha1.Sync{}
			s.Generation = 1
			s.Spec.Source.Repo, s.Spec.Source.Ref = "https://git.example.org/platform.git", "main"
			s.Status = v1alpha1.Status{ObservedGeneration: 1, LastAttemptedRevision: "new", Moves: moves}
			tc.change(&s)
			got, writes := elsewhere(s)
			if writes == tc.none {
				t.Fatalf("%s\nit writes: %t", tc.reason, writes)
			}
			if diff := cmp.Diff(tc.want, got); writes && diff != "" {
				t.Errorf("%s\nelsewhere (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A leader starts its Syncs one after another. The first ones must not delete objects that have moved to one of the last.
func TestIntroduce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme)
	for name, change := range map[string]func(*v1alpha1.Sync){
		"declares":  func(*v1alpha1.Sync) {},
		"elsewhere": func(s *v1alpha1.Sync) { s.Labels = map[string]string{"shard": "b"} },
		"observes":  func(s *v1alpha1.Sync) { s.Spec.ManagementPolicy = v1alpha1.PolicyObservable },
		"suspended": func(s *v1alpha1.Sync) { s.Spec.Suspend = true },
		"branch":    func(s *v1alpha1.Sync) { s.Spec.Source.Ref = "other" },
	} {
		s := &v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		s.Spec.Source.Repo, s.Spec.Source.Ref = "https://git.example.org/platform.git", "main"
		change(s)
		cluster.WithObjects(s)
	}
	mine, err := labels.Parse("!shard")
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{client: cluster.Build(), subjects: map[inventory.Sync]*subject{}}
	c.Selector, c.Around.Peers = mine, &reconcile.Peers{}
	if err := c.introduce(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends := reconcile.End{Member: reconcile.Member{Repository: "git.example.org/platform", Ref: "main"}, Since: time.Now(), Timeout: time.Hour}
	if diff := cmp.Diff("team/declares, team/elsewhere", awaited(c.Around.Peers.Heirs(inventory.Sync{Namespace: "team", Name: "ends"}, ends))); diff != "" {
		t.Errorf("what may declare an object that another Sync would delete (-want +got):\n%s", diff)
	}
}
