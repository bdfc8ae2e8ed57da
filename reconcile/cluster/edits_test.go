package cluster_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// tableFile is the ADR about marks, with the table of the cost of edits.
const tableFile = "../adr/0004-marks.md"

// A handEdit is a change that a user makes to an applied object.
type handEdit struct {
	what string
	do   func(ctx context.Context) error
	undo func(ctx context.Context) error // undoes an edit that no pass reverts; nil if a pass does
}

// handEdits returns the edits of the table, one per row.
func (w *world) handEdits(space string) []handEdit {
	bucket, region := w.instance("Bucket", space, "logs"), w.crd("Region", "Cluster").GetName()
	buckets, definitions := w.at(w.resource("Bucket"), space), w.at(crds, "")
	settings, logins := w.at(configMaps, space), w.at(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, space)

	of := func(body string) func(context.Context) error {
		return func(ctx context.Context) error { return edit(ctx, buckets, "logs", body) }
	}
	times := 0 // an edit that is not undone must change something the second time, too
	again := func(at dynamic.ResourceInterface, name, body string, subresources ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			times++
			return edit(ctx, at, name, fmt.Sprintf(body, times), subresources...)
		}
	}
	owned := func(apiVersion, kind string) func(context.Context) error {
		return func(ctx context.Context) error {
			home, err := w.at(namespaces, "").Get(ctx, space, metav1.GetOptions{}) // the garbage collector deletes an object whose owner does not exist
			if err != nil {
				return err
			}
			return edit(ctx, definitions, region, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]}}`,
				apiVersion, kind, space, home.GetUID()))
		}
	}
	disowned := func(ctx context.Context) error {
		return edit(ctx, definitions, region, `{"metadata":{"ownerReferences":null}}`)
	}
	return []handEdit{
		{what: "spec: a value of ours changed", do: of(`{"spec":{"size":7}}`)},
		{what: "spec: a field of ours removed", do: of(`{"spec":{"size":null}}`)},
		{what: "spec: a field added that is not ours", do: again(buckets, "logs", `{"spec":{"color":%d}}`)},
		{what: "spec of a CRD", do: func(ctx context.Context) error {
			return edit(ctx, definitions, region, `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
		}},
		{what: "label: ours removed", do: of(`{"metadata":{"labels":{"` + inventory.SyncLabel + `":null}}}`)},
		{what: "label: another one added", do: again(buckets, "logs", `{"metadata":{"labels":{"team":"%d"}}}`)},
		{what: "annotation: ours removed", do: of(`{"metadata":{"annotations":{"` + inventory.InventoryAnnotation + `":null}}}`)},
		{what: "owner reference added", do: owned("v1", "Namespace"), undo: disowned},
		{what: "owner reference of a Crossplane package added", do: owned("pkg.crossplane.io/v1", "ProviderRevision"), undo: disowned},
		{what: "managed fields wiped", do: of(`{"metadata":{"managedFields":[{}]}}`)},
		{what: "a value changed and put back", do: func(ctx context.Context) error {
			return errors.Join(edit(ctx, buckets, "logs", `{"spec":{"size":7}}`), edit(ctx, buckets, "logs", `{"spec":{"size":1}}`))
		}},
		{what: "deleted", do: func(ctx context.Context) error { return buckets.Delete(ctx, "logs", metav1.DeleteOptions{}) }},
		{what: "deleted and made again", do: func(ctx context.Context) error {
			gone := buckets.Delete(ctx, "logs", metav1.DeleteOptions{})
			_, err := buckets.Create(ctx, bucket, metav1.CreateOptions{FieldManager: "somebody"})
			return errors.Join(gone, err)
		}},
		{what: "ConfigMap (no generation): a value changed", do: func(ctx context.Context) error { return edit(ctx, settings, "settings", `{"data":{"key":"2"}}`) }},
		{what: "ConfigMap: a value added that is not ours", do: again(settings, "settings", `{"data":{"other":"%d"}}`)},
		{what: "Secret (no generation): a value changed", do: func(ctx context.Context) error { return edit(ctx, logins, "login", `{"data":{"password":"Mg=="}}`) }},
		{what: "status written", do: again(buckets, "logs", `{"status":{"times":%d}}`, "status")},
		{what: "status of a Namespace (no generation) written", do: again(w.at(namespaces, ""), space, `{"status":{"conditions":[{"type":"Times%d","status":"True"}]}}`, "status")},
	}
}

// Even without a watch, the next pass finds every edit; with a watch, the edit triggers a pass immediately. The table lists the
// cost of each edit, so that a more expensive pass is noticed. The test compares the table with the published one.
//
//test:long,unraced
func TestTableOfEdits(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	source := commitOf(t, namespace(space), w.crd("Bucket", "Namespaced"), w.crd("Region", "Cluster"), w.instance("Bucket", space, "logs"), configMap(space, "settings", "1"),
		thing("v1", "Secret", space, "login", map[string]any{"data": map[string]any{"password": "MQ=="}}))
	kinds := 5

	w.pass(t, source)
	idle := w.pass(t, source).requests
	if diff := gocmp.Diff(map[string]int{"GET": 4, "LIST": kinds}, idle); diff != "" {
		t.Fatalf("A pass with nothing to do reads the inventory, what is served, the key of the digests of Secrets, and a list of each kind.\nrequests (-want +got):\n%s", diff)
	}
	running := maps.Clone(idle) // a running process has already read the key
	running["GET"]--
	edits, rows := w.handEdits(space), []string{"| edit by hand | what the pass does | dry runs | reads | writes |\n", "|---|---|---|---|---|\n"}
	for _, e := range edits {
		t.Run(e.what, func(t *testing.T) {
			if err := e.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			found := w.pass(t, source)
			row := found.row(e.what, idle)
			rows = append(rows, row)
			if after := w.pass(t, source); !gocmp.Equal(after.requests, idle) {
				t.Errorf("Once it was looked at there is nothing left to do, look at or remember, but the pass after it did\n%s", after.row(e.what, idle))
			}
			w.undo(t, source, e)

			within := fixtures.Patience
			if found.does == "" && gocmp.Equal(found.requests, idle) { // an edit without effect triggers no pass
				within = 2 * time.Second
			}
			prompt := w.watchedPass(t, source, kinds, e, within)
			if diff := gocmp.Diff(row, prompt.row(e.what, running)); diff != "" {
				t.Errorf("The pass that the watch prompts finds the same, at the same cost.\nwithout and with a watch (-want +got):\n%s", diff)
			}
			w.undo(t, source, e)
		})
	}
	table := strings.Join(rows, "")
	t.Log("\n" + table)
	if !t.Failed() && len(rows) == 2+len(edits) { // otherwise -run selected only some edits
		compareTable(t, table)
	}
}

// A made is the result and the cost of a pass.
type made struct {
	does     string
	requests map[string]int
}

func madeOf(r report.Report, requests map[string]int) made {
	var does []string
	for _, s := range r.Steps {
		does = append(does, fmt.Sprintf("%s (%s)", s.Action, cmp.Or(string(s.Guard), string(s.Cause))))
	}
	return made{strings.Join(does, ", "), requests}
}

// row returns the table row of an edit: what the pass did, and its cost in addition to an idle pass.
func (m made) row(what string, idle map[string]int) string {
	beside := func(verbs ...string) string {
		var parts []string
		for _, verb := range verbs {
			if n := m.requests[verb] - idle[verb]; n != 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, verb))
			}
		}
		return strings.Join(parts, ", ")
	}
	dry, _, _ := strings.Cut(beside("DRY-RUN PATCH"), " ")
	reads, writes := beside("GET", "LIST", "WATCH"), beside("PATCH", "POST", "PUT", "DELETE")
	does := m.does
	switch {
	case does == "" && dry != "":
		does = "looks, and remembers that it did"
	case does == "":
		does = "nothing"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", what, does, dry, reads, writes)
}

// pass makes a pass in a new process.
func (w *world) pass(t *testing.T, source files) made {
	t.Helper()
	c := w.cluster(t, cluster.Options{})
	w.requests.Reset()
	r, err := reconcile.Reconciler{Source: source, Observer: c, Applier: c, Sync: w.sync}.Run(t.Context(), "")
	if err != nil || r.Summary.Failed+r.Summary.NotReady > 0 {
		t.Fatal(err, r)
	}
	return madeOf(r, w.requests.Counts())
}

// watchedPass returns the pass that an edit triggers in a loop. The loop has just begun to watch, and its interval is too long to
// matter. If no pass comes within the given time, the result equals an idle pass.
func (w *world) watchedPass(t *testing.T, source files, kinds int, e handEdit, within time.Duration) made {
	t.Helper()
	c := w.cluster(t, cluster.Options{})
	passed := make(chan reconcile.Event, 1)
	w.requests.Reset()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	loop := reconcile.Loop{
		Reconciler: reconcile.Reconciler{Source: source, Observer: c, Applier: c, Sync: w.sync},
		Watcher:    c,
		Interval:   time.Hour,
		OnEvent: func(e reconcile.Event) {
			if e.Kind == reconcile.Passed {
				passed <- e
			}
		},
	}
	go func() {
		defer close(ended)
		loop.Run(ctx)
	}()
	defer func() {
		end()
		<-ended
	}()
	<-passed
	until(t, func() bool { return w.requests.Counts()["WATCH"] == kinds+1 }) // the inventory is also watched; each watch begins where its list ended

	w.requests.Reset()
	if err := e.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-passed:
		if p.Err != nil || p.Because != reconcile.Moved {
			t.Errorf("a pass because of %s: %v", p.Because, p.Err)
		}
		return madeOf(p.Report, w.requests.Counts())
	case <-time.After(within):
		return made{requests: map[string]int{"GET": 3, "LIST": kinds}}
	}
}

func (w *world) undo(t *testing.T, source files, e handEdit) {
	t.Helper()
	if e.undo == nil {
		return
	}
	if err := e.undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.pass(t, source)
}

// compareTable compares a table with the published one.
func compareTable(t *testing.T, table string) {
	t.Helper()
	doc, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(doc), "\n")
	inTable := func(line string) bool { return strings.HasPrefix(line, "|") }
	first := slices.IndexFunc(lines, inTable)
	if first < 0 {
		t.Fatalf("%s has no table", tableFile)
	}
	last := first
	for last < len(lines) && inTable(lines[last]) {
		last++
	}
	golden.Compare(t, tableFile, strings.Join(lines[:first], "")+table+strings.Join(lines[last:], ""))
}

// files is a Source of one commit in memory.
type files fstest.MapFS

// Fetch returns the commit.
func (f files) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Revision: "0123456789abcdef", Files: fstest.MapFS(f)}, nil
}

func commitOf(t *testing.T, objects ...*unstructured.Unstructured) files {
	t.Helper()
	var all bytes.Buffer
	for _, u := range objects {
		data, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("---\n" + string(data))
	}
	return files{"all.yaml": &fstest.MapFile{Data: all.Bytes()}}
}
