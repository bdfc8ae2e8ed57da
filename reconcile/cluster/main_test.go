//test:package raced served minutes=5
package cluster_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/traffic"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	fixtures.AtOnce(8)
	os.Exit(fixtures.WithControlPlane(m))
}

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// A world is the part of a control plane that one test uses.
type world struct {
	config   *rest.Config
	requests *traffic.Requests
	sync     inventory.Sync
	group    string
	live     dynamic.Interface // requests of other users, which are not counted
}

// newWorld runs a test in parallel with others and returns its world. No other test uses the same control plane meanwhile.
func newWorld(t *testing.T) *world {
	t.Helper()
	fixtures.InParallel(t)
	return worldOf(t, fixtures.Config(t))
}

// worldOf returns the world of a test in a control plane. No other test uses its names.
func worldOf(t *testing.T, config *rest.Config) *world {
	t.Helper()
	sum := sha256.Sum256([]byte(t.Name()))
	name := "t" + hex.EncodeToString(sum[:])[:8]
	w := &world{
		config:   config,
		requests: &traffic.Requests{},
		sync:     inventory.Sync{Namespace: name, Name: "main"},
		group:    name + ".example.org",
	}
	w.config.QPS = -1
	live, err := dynamic.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.live = live
	return w
}

// cluster returns a new process of the sync.
func (w *world) cluster(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	return clusterOf(t, w.config, w, options)
}

func clusterOf(t *testing.T, config *rest.Config, w *world, options cluster.Options) *cluster.Cluster {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(w.requests.Wrap)
	if options.Timeout == 0 {
		options.Timeout = 20 * time.Second
	}
	c, err := cluster.New(config, w.sync, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crd returns a CRD in the world's group, with one version and any spec.
func (w *world) crd(kind, scope string) *unstructured.Unstructured {
	plural := strings.ToLower(kind) + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + w.group},
		"spec": map[string]any{
			"group": w.group,
			"scope": scope,
			"names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

func (w *world) instance(kind, namespace, name string) *unstructured.Unstructured {
	return thing(w.group+"/v1", kind, namespace, name, map[string]any{"spec": map[string]any{"size": int64(1)}})
}

func (w *world) resource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

func thing(apiVersion, kind, namespace, name string, body map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	maps.Copy(u.Object, body)
	u.SetName(name)
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	return u
}

func configMap(namespace, name, value string) *unstructured.Unstructured {
	return thing("v1", "ConfigMap", namespace, name, map[string]any{"data": map[string]any{"key": value}})
}

func namespace(name string) *unstructured.Unstructured {
	return thing("v1", "Namespace", "", name, nil)
}

// want returns a commit with some objects.
func want(t *testing.T, objects ...*unstructured.Unstructured) render.Desired {
	t.Helper()
	d := render.Desired{Revision: "abc", Owner: render.OwnerHeadgate}
	for i, u := range objects {
		o, err := render.NewObject(u, manifest.Origin{Path: "all.yaml", Line: i + 1})
		if err != nil {
			t.Fatal(err)
		}
		d.Objects = append(d.Objects, o)
	}
	slices.SortFunc(d.Objects, func(a, b render.Object) int { return a.ID.Compare(b.ID) })
	return d
}

// planned returns the plan of a pass.
func planned(t *testing.T, c *cluster.Cluster, commit render.Desired) plan.Plan {
	t.Helper()
	p, err := tryPlan(t.Context(), c, commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if changes, why := s.Explained(); s.Action == plan.Update && s.Err == nil && !s.Waiting() && (len(changes) == 0 && why.None() || why.Code == reason.NoValueChanges) {
			t.Errorf("the plan does not show what the update of %s is for", s.ID)
		}
	}
	return p
}

func tryPlan(ctx context.Context, c *cluster.Cluster, commit render.Desired) (plan.Plan, error) {
	seen, err := c.Observe(ctx, commit)
	if err != nil {
		return plan.Plan{}, err
	}
	guards := guard.Guarding{PruneInstances: true}.Guards()
	seen.Answers = question.Answers{}
	p, err := draft.Compute(seen, guards...)
	for round := 0; err == nil && len(p.Open()) > 0 && round < 3; round++ { // one answer may lead to the question of another guard
		answers, failed := c.Answer(ctx, p.Open())
		if failed != nil {
			return plan.Plan{}, failed
		}
		maps.Copy(seen.Answers, answers)
		p, err = draft.Compute(seen, guards...)
	}
	return p, err
}

// applied makes a whole pass, in which no step may fail, and returns its first plan. A step that takes over fields has a second phase.
func applied(t *testing.T, c *cluster.Cluster, commit render.Desired) plan.Plan {
	t.Helper()
	p := planned(t, c, commit)
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		if o.Err != nil || !o.NotReady.None() {
			t.Fatalf("%s %s: %v %s", o.Action, o.ID, o.Err, o.NotReady)
		}
	}
	if slices.ContainsFunc(done, func(o plan.Outcome) bool { return o.Did == plan.DoAdopt }) {
		applied(t, c, commit)
	}
	return p
}

// actions returns the steps of a plan without keeps: "create Kind.group/name".
func actions(p plan.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		switch {
		case s.Action == plan.Keep && s.Cause != plan.Retain:
		case s.Guard != "":
			all = append(all, fmt.Sprintf("%s (%s) %s", s.Action, s.Guard, s.ID))
		default:
			all = append(all, fmt.Sprintf("%s (%s) %s", s.Action, s.Cause, s.ID))
		}
	}
	return all
}
