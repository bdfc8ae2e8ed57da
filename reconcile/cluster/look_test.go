package cluster_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// looker returns a new process of an observe-only sync, as a user with read access only.
func (w *world) looker(t *testing.T, resources ...string) *cluster.Looker {
	t.Helper()
	var rules [][3]string
	for _, r := range resources {
		resource, group, _ := strings.Cut(r, ".")
		for _, verb := range []string{"get", "list", "watch"} {
			rules = append(rules, [3]string{verb, group, resource})
		}
	}
	config := rest.CopyConfig(w.as(t, rules))
	config.Wrap(w.requests.Wrap)
	l, err := cluster.NewLooker(config, w.sync, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// looked returns the plan of a pass, which may send only reads.
func (w *world) looked(t *testing.T, l *cluster.Looker, commit render.Desired) plan.Plan {
	t.Helper()
	seen, err := l.Observe(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen, guard.Guarding{}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	if p.Writes() || p.Remembers() || len(p.Open()) > 0 {
		t.Errorf("A plan of a sync that only looks writes nothing: %v", actions(p))
	}
	w.onlyReads(t)
	return p
}

func (w *world) onlyReads(t *testing.T) {
	t.Helper()
	for verb := range w.requests.Counts() {
		if !slices.Contains([]string{"GET", "LIST", "WATCH"}, verb) {
			t.Errorf("%s was sent, not even for a dry run may it: %q", verb, w.requests.Log())
		}
	}
}

// differences returns the differences in a plan: checks and drift, with changes.
func differences(p plan.Plan) []string {
	var all []string
	say := func(word, id string, changes []diff.Change) {
		for _, c := range changes {
			all = append(all, strings.TrimSpace(word+" "+id+" "+c.Path+": "+c.From+" → "+c.To+" "+c.By))
		}
		if len(changes) == 0 {
			all = append(all, word+" "+id)
		}
	}
	for _, e := range p.Effects {
		say(string(e.Would())+" by "+e.By, e.On.String(), e.Changes())
	}
	for _, s := range p.Steps {
		if s.Cause == plan.Drift {
			say("drift", s.ID.String(), s.Changes())
		}
	}
	return all
}

// written decodes an object as a user writes it, without the API server's defaults.
func written(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return u
}

// resourceOf returns the resource of an object's kind, for the kinds in these tests.
func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	gvk := u.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	return gvk.GroupVersion().WithResource(plural)
}

// spelt returns objects as users write them, with values that the API server stores in another form.
func (w *world) spelt(t *testing.T, space string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for text := range strings.SplitSeq(strings.NewReplacer("GROUP", w.group, "SPACE", space).Replace(`
apiVersion: v1
kind: Namespace
metadata: {name: SPACE}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP, creationTimestamp: null, labels: {}, annotations: null}
spec:
  group: GROUP
  names: {kind: Thing, plural: things, shortNames: []}
  scope: Namespaced
  preserveUnknownFields: false
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: false
    additionalPrinterColumns: []
    schema:
      openAPIV3Schema:
        type: object
        description: ""
        required: []
        properties:
          spec:
            type: object
            nullable: false
            properties:
              mode: {type: string, default: fast}
              off: {type: boolean}
              steps:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [step]
                items: {type: object, required: [step], properties: {step: {type: string}, times: {type: integer, default: 1}}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: a, namespace: SPACE}
spec: {hard: {cpu: 1000m, memory: 1024Mi, pods: 10, requests.storage: "0.5"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: SPACE, labels: {a: b}}
data: {a: "", b: "1.10"}
binaryData: {}
---
apiVersion: v1
kind: Secret
metadata: {name: a, namespace: SPACE}
type: Opaque
stringData: {a: canary}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: SPACE}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: SPACE}
roleRef: {kind: ClusterRole, name: SPACE}
subjects: [{kind: User, name: a, namespace: ""}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: SPACE}
webhooks:
- name: a.example.org
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: a, namespace: b}}
  rules: [{apiGroups: [never.example.org], apiVersions: [v1], operations: ["*"], resources: [a]}]
---
apiVersion: GROUP/v1
kind: Thing
metadata: {name: a, namespace: SPACE}
spec: {off: false, steps: [{step: b}, {step: a, times: 2}], tags: [b, a]}
`), "---\n") {
		all = append(all, written(t, text))
	}
	return all
}

// An API server returns many values in another form and adds defaults. None of that is a difference.
func TestLookAtWhatTheAPIServerMadeOfIt(t *testing.T) {
	t.Parallel()
	cases := map[string]func(ctx context.Context, at dynamic.ResourceInterface, u *unstructured.Unstructured) error{
		"ServerSide": func(ctx context.Context, at dynamic.ResourceInterface, u *unstructured.Unstructured) error {
			_, err := at.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true})
			return err
		},
		"ClientSide": func(ctx context.Context, at dynamic.ResourceInterface, u *unstructured.Unstructured) error {
			_, err := at.Create(ctx, u, metav1.CreateOptions{FieldManager: "argocd-controller"})
			return err
		},
	}
	for name, apply := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			objects := w.spelt(t, w.sync.Namespace+"-app")
			for _, u := range objects {
				eventually(t, func() error { return apply(t.Context(), w.at(resourceOf(u), u.GetNamespace()), u) })
			}
			l := w.looker(t,
				"customresourcedefinitions.apiextensions.k8s.io", "namespaces.", "resourcequotas.", "configmaps.", "secrets.",
				"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
				"validatingwebhookconfigurations.admissionregistration.k8s.io", "things."+w.group)
			commit := want(t, objects...)
			w.requests.Reset()
			if got := differences(w.looked(t, l, commit)); len(got) > 0 {
				t.Errorf("The value of the commit is live: %q", got)
			}
			w.requests.Reset()
			got := differences(w.looked(t, l, commit))
			if len(got) > 0 || w.requests.Total() != 2+len(objects) {
				t.Errorf("A second look asks what is served, and for the metadata of each: %q, %q", got, w.requests.Log())
			}
		})
	}
}

// eventually retries what an API server may need a moment for.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// The CRDs of real packages must equal the same CRDs in an API server.
//
//test:long
func TestLookAtRealCRDs(t *testing.T) {
	w := newWorld(t)
	var objects []*unstructured.Unstructured
	for _, archive := range []string{"crossplane-core", "provider-kubernetes", "provider-helm"} {
		files := fixtures.Corpus(t, archive)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if data, err := fs.ReadFile(files, name); err == nil && strings.Contains(string(data), "kind: CustomResourceDefinition") {
				u := written(t, string(data))
				unstructured.RemoveNestedField(u.Object, "spec", "conversion") // no package contains the service of its webhook
				objects = append(objects, u)
			}
		}
	}
	if len(objects) < 20 {
		t.Fatalf("%d CRDs", len(objects))
	}
	fixtures.Retire(t) // a later test could meet CRDs that are still being deleted
	for _, u := range objects {
		applyAs(t, "kustomize-controller", w.at(crds, ""), u)
	}
	l := w.looker(t, "customresourcedefinitions.apiextensions.k8s.io")
	if got := differences(w.looked(t, l, want(t, objects...))); len(got) > 0 {
		t.Errorf("nothing differs, but: %q", got)
	}
}

// TestLookAgain combines commits, another applier and manual edits, and checks the reports and their cost.
func TestLookAgain(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	at := w.at(configMaps, space)
	create(t, w.at(namespaces, ""), namespace(space))
	ofFlux := func(name, value string) *unstructured.Unstructured {
		u := configMap(space, name, value)
		u.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"})
		return u
	}
	flux := func(name, value string) { t.Helper(); applyAs(t, "kustomize-controller", at, ofFlux(name, value)) }
	commit := func(value string, names ...string) render.Desired {
		t.Helper()
		var objects []*unstructured.Unstructured
		for _, name := range names {
			objects = append(objects, configMap(space, name, value))
		}
		return want(t, objects...)
	}
	l := w.looker(t, "configmaps.")
	news := watchIt(t, l.Watch)
	expect := func(reason string, commit render.Desired, bodies int, want ...string) {
		t.Helper()
		w.requests.Reset()
		got := differences(w.looked(t, l, commit))
		if !slices.Equal(got, w.named(space, want)) {
			t.Errorf("%s\ngot %q, want %q", reason, got, w.named(space, want))
		}
		read := 0
		for _, line := range w.requests.Log() {
			if strings.HasPrefix(line, "GET /api/v1/namespaces/") {
				read++
			}
		}
		if read -= len(commit.Objects); read != bodies { // the metadata of each object is read as well
			t.Errorf("%s\n%d bodies were read, want %d: %q", reason, read, bodies, w.requests.Log())
		}
	}
	const applier = "the Flux Kustomization flux-system/apps"
	settings, others := "ConfigMap/"+space+"/settings", "ConfigMap/"+space+"/others"

	flux("settings", "1")
	expect("Applied objects are reported as applied, and missing ones with the tool that should apply them.", commit("1", "settings", "others"), 1,
		"create by "+applier+" ConfigMap/%s/others")
	expect("Without a change, nothing is read again.", commit("1", "settings", "others"), 0, "create by "+applier+" ConfigMap/%s/others")
	flux("others", "1")
	news.comes(t, others)
	expect("The tool applies the missing object.", commit("1", "settings", "others"), 1)
	news.comes(t)

	expect("A new commit is not applied yet.", commit("2", "settings", "others"), 2,
		"update by "+applier+` ConfigMap/%s/others data.key: "1" → "2"`, "update by "+applier+` ConfigMap/%s/settings data.key: "1" → "2"`)
	expect("An object with a known difference is not read again.", commit("2", "settings", "others"), 0,
		"update by "+applier+` ConfigMap/%s/others data.key: "1" → "2"`, "update by "+applier+` ConfigMap/%s/settings data.key: "1" → "2"`)
	flux("settings", "2")
	flux("others", "2")
	news.comes(t, settings, others)
	both := commit("2", "settings", "others")
	expect("The tool applies the new commit.", both, 2)

	w.patch(t, at, "settings", `{"data":{"key":"wrong"}}`)
	news.comes(t, settings)
	expect("A manual edit is drift, and the report names the object.", both, 1, `drift ConfigMap/%s/settings data.key: "wrong" → "2" somebody`)
	w.patch(t, at, "settings", `{"data":{"key":null,"more":"3"}}`)
	expect("A manually removed field is drift; an added one is ignored.", both, 1, `drift ConfigMap/%s/settings data.key:  → "2"`)
	flux("settings", "2")
	expect("The tool corrects the object.", both, 1)
	flux("settings", "1")
	expect("A difference from a tool that is at another commit is late, not drift.", both, 1, "update by "+applier+` ConfigMap/%s/settings data.key: "1" → "2"`)
	flux("settings", "2")
	expect("The tool applies the commit again.", both, 1)
	if err := at.Delete(t.Context(), "others", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	news.comes(t, others)
	expect("A deleted object is drift until it is created again.", both, 0, "drift ConfigMap/%s/others")
	expect("The drift is reported again.", both, 0, "drift ConfigMap/%s/others")
	expect("A change in the commit must be applied first.", commit("3", "settings", "others"), 1,
		"create by "+applier+" ConfigMap/%s/others", "update by "+applier+` ConfigMap/%s/settings data.key: "2" → "3"`)
	news.comes(t)
	if len(news.trouble) > 0 {
		t.Errorf("It could be watched: %v", news.trouble)
	}
	w.onlyReads(t)

	// A new process has no records, and reports only the differences that it can see.
	fresh := w.looker(t, "configmaps.")
	if got := differences(w.looked(t, fresh, commit("2", "settings", "others"))); !slices.Equal(got, w.named(space, []string{"create by " + applier + " ConfigMap/%s/others"})) {
		t.Errorf("got %q", got)
	}
}

func TestLookAtManyNamespaces(t *testing.T) {
	w := newWorld(t)
	var objects []*unstructured.Unstructured
	for _, name := range []string{"a", "b"} {
		space := w.sync.Namespace + "-" + name
		create(t, w.at(namespaces, ""), namespace(space))
		for _, n := range []string{"1", "2", "3"} {
			u := configMap(space, n, "1")
			objects = append(objects, u)
			applyAs(t, "kustomize-controller", w.at(configMaps, space), u)
		}
	}
	l := w.looker(t, "configmaps.")
	news := watchIt(t, l.Watch)
	one, all := want(t, objects[0]), want(t, objects...)
	if got := differences(w.looked(t, l, one)); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	time.Sleep(time.Second) // wait for the watch of one namespace
	if got := differences(w.looked(t, l, all)); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	last := objects[len(objects)-1]
	time.Sleep(time.Second) // wait for the watch of all namespaces
	w.patch(t, w.at(configMaps, last.GetNamespace()), last.GetName(), `{"data":{"key":"wrong"}}`)
	news.comes(t, "ConfigMap/"+last.GetNamespace()+"/"+last.GetName())
	for _, line := range w.requests.Log() {
		if strings.HasPrefix(line, "LIST") && strings.Contains(line, "/namespaces?") {
			t.Errorf("Nothing is read that is not wanted: %s", line)
		}
	}
}

func TestLookerNeedsRights(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	create(t, w.at(namespaces, ""), namespace(space))
	create(t, w.at(configMaps, space), configMap(space, "a", "1"))
	commit := want(t, namespace(space), configMap(space, "a", "1"), w.crd("Bucket", "Namespaced"))

	l := w.looker(t, "namespaces.")
	_, err := l.Observe(t.Context(), commit)
	if err == nil {
		t.Fatal("It may not read what the commit wants.")
	}
	for _, want := range []string{
		`not allowed to get configmaps a (RBAC: grant the verb "get")`,
		`not allowed to get customresourcedefinitions.apiextensions.k8s.io buckets.` + w.group + ` (RBAC: grant the verb "get")`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Every right that is missing is said at once: want %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "namespaces "+space) {
		t.Errorf("A readable kind is no problem: %v", err)
	}

	// Headgate reports kinds that it cannot watch, and continues.
	config := rest.CopyConfig(w.as(t, [][3]string{{"get", "", "configmaps"}}))
	if l, err = cluster.NewLooker(config, w.sync, cluster.Options{}); err != nil {
		t.Fatal(err)
	}
	news := watchIt(t, l.Watch)
	if _, err := l.Observe(t.Context(), want(t, configMap(space, "a", "1"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		news.mu.Lock()
		defer news.mu.Unlock()
		if len(news.trouble) == 0 {
			return context.DeadlineExceeded
		}
		return nil
	})
	if want := `not allowed to watch configmaps (RBAC: grant the verb "list")`; !strings.Contains(news.trouble[0], want) {
		t.Errorf("got %v, want %q", news.trouble, want)
	}
	w.onlyReads(t)
}

// Unless Headgate knows whether a kind is served, it must not report the objects as missing.
func TestLookIntoTheDark(t *testing.T) {
	w := newWorld(t)
	service := thing("apiregistration.k8s.io/v1", "APIService", "", "v1."+w.group, map[string]any{"spec": map[string]any{
		"group": w.group, "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
		"service": map[string]any{"namespace": "default", "name": "nobody"}, "insecureSkipTLSVerify": true,
	}})
	create(t, w.at(resourceOf(service), ""), service)
	defer func() {
		_ = w.at(resourceOf(service), "").Delete(context.Background(), service.GetName(), metav1.DeleteOptions{})
	}()
	l := w.looker(t, "namespaces.")
	commit := want(t, w.instance("Bucket", "default", "logs"))
	eventually(t, func() error { // the aggregator checks the APIService periodically
		seen, err := l.Observe(t.Context(), commit)
		if err != nil {
			return err
		}
		p, err := draft.Compute(seen)
		if err != nil {
			return err
		}
		if len(p.Effects) != 1 || p.Effects[0].State != plan.Broken || !strings.Contains(words.Of(p.Effects[0].Reason), "it is not known whether Bucket."+w.group+" is served") {
			return fmt.Errorf("want an effect about the unknown part, got %v", p.Effects)
		}
		return nil
	})
	if got := differences(w.looked(t, l, want(t, namespace("default")))); len(got) > 0 {
		t.Errorf("Problems outside of the commit do not count, got %q", got)
	}
}
