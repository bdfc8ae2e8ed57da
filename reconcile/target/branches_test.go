package target

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Two processes with a copied Sync file follow two branches of one repository. They once deleted each other's objects every few
// seconds, and every pass was a success.
func TestTwoBranches(t *testing.T) {
	config := fixtures.Config(t)
	live, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const space = "two-branches"
	if _, err := live.Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := newRepo(t)
	object := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\n", name, space)
	}
	checkout := func(branch string, create bool) {
		t.Helper()
		if err := r.tree.Checkout(&git.CheckoutOptions{Branch: plumbing.NewBranchReferenceName(branch), Create: create}); err != nil {
			t.Fatal(err)
		}
	}
	first := r.push(t, "a.yaml", object("a"))
	checkout("feature", true)
	r.push(t, "b.yaml", object("b")) // one commit ahead
	process := func(source string) *Target {
		t.Helper()
		s := decode(t, fmt.Sprintf("  source: {repo: %q, %s}\n  crdOwner: Headgate\n", r.dir, source))
		s.Namespace, s.Name = space, "main"
		target, err := New(s, Surroundings{Cluster: config, Cache: t.TempDir(), Secret: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = target.Close() })
		return target
	}
	has := func(name string, want bool) {
		t.Helper()
		if _, err := live.ConfigMaps(space).Get(t.Context(), name, metav1.GetOptions{}); apierrors.IsNotFound(err) == want {
			t.Fatalf("ConfigMap %s: %v, want it: %t", name, err, want)
		}
	}
	passes := func(what string, of *Target) report.Report {
		t.Helper()
		done, err := of.Once(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return done
	}
	refused := func(what string, of *Target) string {
		t.Helper()
		done, err := of.Once(t.Context())
		var other *reason.SourceError
		if !errors.As(err, &other) || done.Verdict.ExitCode != 1 {
			t.Fatalf("%s: want a refusal, got %v, exit code %d", what, err, done.Verdict.ExitCode)
		}
		return other.Recorded
	}

	main, feature := process("ref: master"), process("ref: feature")
	passes("the first branch", main)
	recorded := refused("a branch whose commit descends", feature)
	if !strings.HasSuffix(recorded, "?ref=master") {
		t.Errorf("The message names the ref: %s", recorded)
	}
	passes("the first branch goes on", main)
	has("b", false)

	// A person moves the sync to the other branch, and the setting stays in the file.
	takes := process(fmt.Sprintf("ref: feature, takeOver: %q", recorded))
	passes("the named source is taken over", takes)
	has("b", true)
	back := refused("the first branch", main)
	returns := process(fmt.Sprintf("ref: master, takeOver: %q", back))
	passes("and back", returns)
	has("b", false)
	refused("the setting has no effect any more", takes)
	passes("neither here", returns)
	has("a", true)
	has("b", false)

	// Commits that a person names belong to the branch if their histories do. Two processes can still apply two of them in turn.
	checkout("master", false)
	second := r.push(t, "c.yaml", object("c"))
	older, newer := process("ref: "+first), process("ref: "+second)
	passes("the branch", main)
	passes("older", older)
	passes("newer", newer)
	for name, of := range map[string]*Target{"older": older, "newer": newer, "the branch": main} {
		_, err := of.Once(t.Context())
		var turns *reason.TurnsError
		if !errors.As(err, &turns) || !strings.Contains(err.Error(), first[:12]) || !strings.Contains(err.Error(), second[:12]) {
			t.Errorf("%s: want a refusal that names both commits, got %v", name, err)
		}
	}
	has("c", true)
	r.push(t, "d.yaml", object("d"))
	passes("a new commit ends it", main)
	has("d", true)
}
