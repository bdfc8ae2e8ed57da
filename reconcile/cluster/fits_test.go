package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/words"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// answered returns a plan whose questions the cluster has answered.
func answered(t *testing.T, c *cluster.Cluster, seen facts.Observed) plan.Plan {
	t.Helper()
	seen.Answers = question.Answers{}
	var p plan.Plan
	for range 3 {
		var err error
		if p, err = draft.Compute(seen, guard.Guarding{}.Guards()...); err != nil {
			t.Fatal(err)
		}
		answers, err := c.Answer(t.Context(), p.Open())
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(seen.Answers, answers)
	}
	return p
}

// The stored objects decide whether a breaking update of their kind is held. Headgate reads them page by page, and holds the update
// if it cannot read them.
func TestObjectsDecide(t *testing.T) {
	w := newWorld(t)
	of := func(fields ...string) *unstructured.Unstructured {
		u := w.crd("Bucket", "Cluster")
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]any{"type": "string"}
		}
		u.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "properties": map[string]any{
				"spec":   map[string]any{"type": "object", "properties": properties},
				"status": map[string]any{"type": "object", "properties": properties},
			},
		}}
		return u
	}
	applied(t, w.cluster(t, cluster.Options{}), want(t, of("region", "size", "unset")))
	for i := range 120 { // more than one page
		u := w.instance("Bucket", "", fmt.Sprintf("b%03d", i))
		u.Object["spec"] = map[string]any{"region": "north"}
		if i >= 118 {
			u.Object["spec"] = map[string]any{"size": "large"}
		}
		w.made(t, u)
		if i == 0 {
			w.patch(t, w.at(w.resource("Bucket"), ""), u.GetName(), `{"status":{"unset":"x"}}`, "status")
		}
	}
	unreadable := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/buckets") && !strings.Contains(req.Header.Get("Accept"), "PartialObjectMetadata") {
			return nil, errors.New("boom")
		}
		return next.RoundTrip(req)
	})
	cases := map[string]struct {
		reason string
		after  *unstructured.Unstructured
		config *rest.Config
		held   bool
		want   string
	}{
		"Loses":  {reason: "Two objects set the field that the update removes.", after: of("region", "unset"), config: w.config, held: true, want: "2 of 120 set spec.size, which is lost, for example Bucket b118"},
		"Fits":   {reason: "No object sets the removed field in its spec, and a controller writes the status again.", after: of("region", "size"), config: w.config, want: "120 custom resources exist, and none loses a value or is refused"},
		"Unread": {reason: "If the objects cannot be read, the update is held.", after: of("region", "size"), config: unreadable, held: true, want: "they cannot be looked at"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, commit := clusterOf(t, tc.config, w, cluster.Options{}), want(t, tc.after)
			seen, err := c.Observe(t.Context(), commit)
			if err != nil {
				t.Fatal(err)
			}
			s := answered(t, c, seen).Steps[0]
			if (s.Action == plan.Hold) != tc.held || !strings.Contains(words.Of(s.Reason), tc.want) {
				t.Errorf("%s\n%s: %s, want %q", tc.reason, s.Action, words.Of(s.Reason), tc.want)
			}
		})
	}
	t.Run("MoreThanApproved", func(t *testing.T) {
		computed := func(given ...approval.Approval) plan.Plan {
			c := w.cluster(t, cluster.Options{})
			seen, err := c.Observe(t.Context(), want(t, of("region", "unset")))
			if err != nil {
				t.Fatal(err)
			}
			seen.Approvals, seen.Inventory.ResourceVersion = approval.Given{inventory.OnSync: given}, "1"
			return answered(t, c, seen)
		}
		asks := computed().Approval
		if asks == nil || asks.Line() != asks.Digest+" up to 2" {
			t.Fatalf("two objects lose a field: %+v", asks)
		}
		saw := approval.UpTo(2, asks.Digest)
		if s := computed(saw...).Steps[0]; s.Action != plan.Update || !s.Approved {
			t.Errorf("a person approved it: %s", s.Action)
		}
		if s := computed(approval.Typed(asks.Digest)...).Steps[0]; s.Action != plan.Hold {
			t.Error("a digest alone covers no objects")
		}
		more := w.instance("Bucket", "", "b200")
		more.Object["spec"] = map[string]any{"size": "large"}
		w.made(t, more)
		if p := computed(saw...); p.Steps[0].Action != plan.Hold || p.Approval.Line() != asks.Digest+" up to 3" {
			t.Errorf("a third object would lose its field: %s, asks for %+v", p.Steps[0].Action, p.Approval)
		}
	})
}
