package target

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"k8s.io/client-go/rest"
)

// Syncs of two namespaces must not post with each other's tokens, so each namespace has a pair of statuses of its own.
func TestBoardsOfTenants(t *testing.T) {
	for name, tc := range map[string]struct {
		tenants bool
		want    [3]string // the clusters that the statuses name
	}{
		"Process":    {false, [3]string{"east", "east", "east"}},
		"Controller": {true, [3]string{"east", "east/team-a", "east/team-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Surroundings{
				Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(), Boards: &Boards{Tenants: tc.tenants},
			}
			boards := map[*together]bool{}
			for i, namespace := range []string{v1alpha1.DefaultNamespace, "team-a", "team-b"} {
				s := decode(t, "  source: {repo: \"https://git.example.org/acme/platform.git\", ref: main}\n  clusterName: east\n  statuses: {forge: Gitea, contexts: Cluster}\n")
				s.Namespace = namespace
				one, err := New(s, in)
				if err != nil {
					t.Fatal(err)
				}
				defer one.Close()
				m, is := one.outbox.(*onBoard)
				if !is {
					t.Fatalf("%s has no board", namespace)
				}
				boards[m.of] = true
				if m.posts.Cluster != tc.want[i] {
					t.Errorf("%s posts for %q, want %q", namespace, m.posts.Cluster, tc.want[i])
				}
			}
			if want := map[bool]int{false: 1, true: 3}[tc.tenants]; len(boards) != want {
				t.Errorf("%d boards, want %d", len(boards), want)
			}
		})
	}
}
