package target

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// A twoSyncs holds two syncs of one process, each for a directory of a repository.
type twoSyncs struct {
	space  string
	goes   string // annotations of the object that moves
	config *rest.Config
	live   *corev1.CoreV1Client
	repos  map[string]repo // by name of the sync
	specs  map[string]string
}

// newTwoSyncs returns the syncs "from" and "to", in one repository or in one each.
func newTwoSyncs(t *testing.T, space string, oneRepository bool) *twoSyncs {
	t.Helper()
	n := &twoSyncs{space: space, config: rest.CopyConfig(fixtures.Config(t)), repos: map[string]repo{}, specs: map[string]string{}}
	n.config.QPS = -1
	var err error
	if n.live, err = corev1.NewForConfig(n.config); err != nil {
		t.Fatal(err)
	}
	if _, err := n.live.Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.repos["from"] = newRepo(t)
	n.repos["to"] = n.repos["from"]
	if !oneRepository {
		n.repos["to"] = newRepo(t)
	}
	n.push(t, map[string]string{"from/a.yaml": n.object("stays", "from") + n.object("moves", "from"), "to/a.yaml": n.object("other", "to")})
	return n
}

// object returns a document of a commit.
func (n *twoSyncs) object(name, value string) string {
	more := ""
	if name == "moves" {
		more = n.goes
	}
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s%s}\ndata: {key: %q}\n", name, n.space, more, value)
}

// push commits files to each repository that has any of them, one commit each.
func (n *twoSyncs) push(t *testing.T, files map[string]string) {
	t.Helper()
	commits := map[repo]map[string]string{}
	for file, content := range files {
		r := n.repos[filepath.Dir(file)]
		if commits[r] == nil {
			commits[r] = map[string]string{}
		}
		commits[r][file] = content
	}
	for r, files := range commits {
		r.pushAll(t, files)
	}
}

// moved returns the files that one push changes to move an object.
func (n *twoSyncs) moved() map[string]string {
	return map[string]string{"from/a.yaml": n.object("stays", "from"), "to/a.yaml": n.object("other", "to") + n.object("moves", "to")}
}

// A process runs both syncs.
type process struct {
	peers *reconcile.Peers
	of    map[string]*Target
}

// process starts a process that uses a client configuration.
func (n *twoSyncs) process(t *testing.T, inTurn bool, config *rest.Config, events func(string, reconcile.Event)) process {
	t.Helper()
	p := process{peers: &reconcile.Peers{InTurn: inTurn}, of: map[string]*Target{}}
	cache := t.TempDir()
	for _, name := range []string{"from", "to"} {
		s := decode(t, fmt.Sprintf("  source: {repo: %q, path: %s}\n  crdOwner: Headgate\n%s", n.repos[name].dir, name, n.specs[name]))
		s.Namespace, s.Name = n.space, name
		target, err := New(s, Surroundings{Cluster: config, Cache: filepath.Join(cache, name), Secret: func(string) {}, Peers: p.peers, Event: func(e reconcile.Event) {
			if events != nil {
				events(name, e)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = target.Close() })
		p.of[name] = target
	}
	return p
}

// once makes a pass of each sync in the given order, like 'headgate run --once'.
func (p process) once(t *testing.T, order ...string) map[string]report.Report {
	t.Helper()
	results := map[string]report.Report{}
	for _, name := range order {
		r, err := p.of[name].Once(t.Context())
		if err != nil {
			t.Fatalf("the pass of %s: %v", name, err)
		}
		results[name] = r
	}
	return results
}

// state returns an object and the sync in its marks.
func (n *twoSyncs) state(t *testing.T, name string) (uid types.UID, by, value string) {
	t.Helper()
	o, err := n.live.ConfigMaps(n.space).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", "", ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.UID, strings.TrimPrefix(o.Labels[inventory.SyncLabel], n.space+"."), o.Data["key"]
}

// holders returns the syncs whose inventories list an object.
func (n *twoSyncs) holders(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, sync := range []string{"from", "to"} {
		o, err := n.live.ConfigMaps(n.space).Get(t.Context(), "headgate-"+sync, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for key := range o.Data {
			if strings.Contains(key, "_"+name+"_") {
				all = append(all, sync)
			}
		}
	}
	return all
}

// lines returns the steps of a report, without plain keeps.
func lines(r report.Report) []string {
	var all []string
	for _, s := range r.Steps {
		if s.Action != plan.Keep || s.Code != "" {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s%s%s", s.Action, s.ID.Name, s.Code, s.Waits, s.Error)))
		}
	}
	return all
}

// If one commit moves an object from one sync to another in the same process, the object must not be deleted, whichever sync passes
// first. A deletion would break the users of the object, and a volume or database would lose its data. Between repositories, an
// annotation on the object announces the move.
//
//test:long
func TestMoveInOneProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		oneRepository bool
		announced     bool
		toFirst       bool // the push to the new sync comes first, with a pass of each
		order         []string
	}{
		"OnePushOldFirst":      {oneRepository: true, order: []string{"from", "to"}},
		"OnePushNewFirst":      {oneRepository: true, order: []string{"to", "from"}},
		"TwoPushesOldFirst":    {oneRepository: true, toFirst: true, order: []string{"from", "to"}},
		"TwoPushesNewFirst":    {oneRepository: true, toFirst: true, order: []string{"to", "from"}},
		"RepositoriesOldFirst": {announced: true, order: []string{"from", "to"}},
		"RepositoriesNewFirst": {announced: true, order: []string{"to", "from"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTwoSyncs(t, strings.ToLower("moves-"+name), tc.oneRepository)
			n.process(t, true, n.config, nil).once(t, tc.order...)
			if tc.announced {
				n.goes = fmt.Sprintf(", annotations: {%s: %s/to}", ownership.ReleaseAnnotation, n.space)
				n.push(t, map[string]string{"from/a.yaml": n.object("stays", "from") + n.object("moves", "from")})
				n.process(t, true, n.config, nil).once(t, tc.order...)
			}
			was, by, _ := n.state(t, "moves")
			if by != "from" {
				t.Fatalf("it is of %q", by)
			}
			rest := n.moved()
			if tc.toFirst {
				moved := n.moved()
				n.push(t, map[string]string{"to/a.yaml": moved["to/a.yaml"]})
				rest = map[string]string{"from/a.yaml": moved["from/a.yaml"]}
				results := n.process(t, true, n.config, nil).once(t, tc.order...)
				if got := lines(results["to"]); !slices.Equal(got, []string{"hold moves OwnedByTool"}) {
					t.Errorf("Both commits declare it, so the second sync has to wait: %v", got)
				}
			}
			n.push(t, rest)
			results := n.process(t, true, n.config, nil).once(t, tc.order...)
			uid, by, value := n.state(t, "moves")
			if uid != was || by != "to" || value != "to" {
				t.Errorf("It moves, and stays the object that it was: %s (was %s) of %q with %q; %v; %v", uid, was, by, value, lines(results["from"]), lines(results["to"]))
			}
			for sync, r := range results {
				if r.Verdict.ExitCode != 0 {
					t.Errorf("A move is nothing to act on, but %s reports %v", sync, lines(r))
				}
			}
			results = n.process(t, true, n.config, nil).once(t, tc.order...)
			if holders := n.holders(t, "moves"); !slices.Equal(holders, []string{"to"}) {
				t.Errorf("One inventory holds it, got %v; %v", holders, lines(results["from"]))
			}
			results = n.process(t, true, n.config, nil).once(t, tc.order...)
			if len(lines(results["from"])) > 0 || len(lines(results["to"])) > 0 {
				t.Errorf("Both are at rest: %v %v", lines(results["from"]), lines(results["to"]))
			}
			// A later commit of the new sync removes the object.
			n.push(t, map[string]string{"to/a.yaml": n.object("other", "to")})
			n.process(t, true, n.config, nil).once(t, tc.order...)
			if uid, _, _ := n.state(t, "moves"); uid != "" {
				t.Error("No commit declares it any more, so it goes.")
			}
		})
	}
}

// One commit may swap objects between two syncs. Each sync then waits for the other, and neither object is deleted.
func TestSwapInOneProcess(t *testing.T) {
	for name, order := range map[string][]string{"OldFirst": {"from", "to"}, "NewFirst": {"to", "from"}} {
		t.Run(name, func(t *testing.T) {
			n := newTwoSyncs(t, strings.ToLower("swap-"+name), true)
			n.process(t, true, n.config, nil).once(t, order...)
			moves, _, _ := n.state(t, "moves")
			other, _, _ := n.state(t, "other")
			n.push(t, map[string]string{"from/a.yaml": n.object("stays", "from") + n.object("other", "from"), "to/a.yaml": n.object("moves", "to")})
			n.process(t, true, n.config, nil).once(t, order...)
			n.process(t, true, n.config, nil).once(t, order...)
			if uid, by, value := n.state(t, "moves"); uid != moves || by != "to" || value != "to" {
				t.Errorf("One object moves: %s (was %s) of %q with %q", uid, moves, by, value)
			}
			if uid, by, value := n.state(t, "other"); uid != other || by != "from" || value != "from" {
				t.Errorf("The other one moves, too: %s (was %s) of %q with %q", uid, other, by, value)
			}
		})
	}
}

// An object that the other sync does not take over is deleted, as between processes, or keeps its owner. It is never left without
// an owner.
//
//test:long
func TestMoveThatIsNotTaken(t *testing.T) {
	refused := "  adoption: Refuse\n"
	for name, tc := range map[string]struct {
		reason string
		spec   string
		apart  bool // the syncs have a repository each
		edit   func(n *twoSyncs, files map[string]string)
		live   string // the owner afterwards
		same   bool   // whether the object must not be recreated
		from   []string
	}{
		"Repositories": {reason: "One commit cannot change both, so the other sync is not asked.", apart: true, from: []string{"prune moves"}, live: "to"},
		"Suspended":    {reason: "A suspended sync renders nothing, so its declarations are unknown.", spec: "  suspend: true\n", from: []string{"prune moves"}},
		"Looks":        {reason: "An observe-only sync applies nothing.", spec: "  managementPolicy: Observable\n", from: []string{"prune moves"}},
		"Refuses":      {reason: "A sync that adopts nothing creates the object again.", spec: refused, from: []string{"prune moves"}, live: "to"},
		"NotAllowed":   {reason: "The other Sync does not allow the object, so it cannot prevent the deletion.", spec: "  allowedKinds: [{kind: ConfigMap, names: [other]}]\n", from: []string{"prune moves"}},
		"ObservesOne": {reason: "The other commit only observes the object.", edit: func(_ *twoSyncs, files map[string]string) {
			files["to/a.yaml"] = strings.Replace(files["to/a.yaml"], "{name: moves,", "{name: moves, annotations: {headgate.dev/management-policy: Observable},", 1)
		}, from: []string{"prune moves"}},
		"Held": {reason: "A guard of the other sync holds the object, so the old sync keeps it and reports that.", edit: func(_ *twoSyncs, files map[string]string) {
			files["to/a.yaml"] = strings.Replace(files["to/a.yaml"], "{name: moves,", "{name: moves, annotations: {kustomize.toolkit.fluxcd.io/force: enabled},", 1)
		}, from: []string{"keep moves TakenOverBySync"}, live: "from", same: true},
		"Invalid": {reason: "The API server refuses the other sync's object.", edit: func(_ *twoSyncs, files map[string]string) {
			files["to/a.yaml"] += "binaryData: {key: aGk=}\n"
		}, from: []string{"keep moves TakenOverBySync"}, live: "from", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTwoSyncs(t, strings.ToLower("untaken-"+name), !tc.apart)
			first := n.process(t, true, n.config, nil)
			first.once(t, "from", "to")
			was, _, _ := n.state(t, "moves")
			files := n.moved()
			if tc.edit != nil {
				tc.edit(n, files)
			}
			n.push(t, files)
			n.specs["to"] = tc.spec + "  timeout: 1s\n"
			for range 2 {
				p := n.process(t, true, n.config, nil)
				result, err := p.of["from"].Once(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := lines(result); !slices.Equal(got, tc.from) {
					t.Errorf("%s\nThe old sync reports %q, want %q", tc.reason, got, tc.from)
				}
				if !tc.same {
					tc.from = nil // it is gone
				}
				if _, err := p.of["to"].Once(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			uid, by, _ := n.state(t, "moves")
			if by != tc.live || (uid == was) != tc.same {
				t.Errorf("%s\nIt is of %q, want %q; UID %s, was %s", tc.reason, by, tc.live, uid, was)
			}
		})
	}
}

// events holds what the loops of a process did.
type events struct {
	mu    sync.Mutex
	all   []string // "sync kind", and "sync rule" for findings
	more  chan struct{}
	steps map[string][]string // steps of the last pass, by sync
}

func newEvents() *events { return &events{more: make(chan struct{}, 1), steps: map[string][]string{}} }

func (e *events) hear(sync string, event reconcile.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf("%s %s %t", sync, event.Kind, event.Err != nil))
	if event.Kind == reconcile.Passed {
		e.steps[sync] = lines(event.Report)
	}
	for _, f := range event.Report.Findings {
		e.all = append(e.all, sync+" "+f.Rule)
	}
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *events) had(what string) func() bool {
	return func() bool { e.mu.Lock(); defer e.mu.Unlock(); return slices.Contains(e.all, what) }
}

// until waits for a condition and checks it after every event.
func (e *events) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.After(2 * time.Minute); !is(); {
		select {
		case <-e.more:
		case <-deadline:
			e.mu.Lock()
			defer e.mu.Unlock()
			t.Fatalf("not in time: %s; %v", what, e.steps)
		}
	}
}

// run runs the loops of a process until the test ends.
func (n *twoSyncs) run(t *testing.T, p process) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	for _, one := range p.of {
		loops.Go(func() { one.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); loops.Wait() })
}

// If only one of two looping syncs has rendered a commit yet, that is no reason to delete: the syncs wake each other.
func TestMoveInLoops(t *testing.T) {
	n := newTwoSyncs(t, "moves-in-loops", true)
	n.specs["from"], n.specs["to"] = "  interval: 1h\n", "  interval: 1h\n"
	heard := newEvents()
	p := n.process(t, false, n.config, heard.hear)
	pushed := new(engine.Signal)
	p.of["from"].Loop.Pushed = pushed // the webhook only wakes the sync that would delete
	n.run(t, p)
	heard.until(t, "both apply", func() bool {
		_, by, _ := n.state(t, "moves")
		_, other, _ := n.state(t, "other")
		return by == "from" && other == "to"
	})
	was, _, _ := n.state(t, "moves")
	n.push(t, n.moved())
	pushed.Send()
	heard.until(t, "the other sync takes it over", func() bool { _, by, _ := n.state(t, "moves"); return by == "to" })
	if uid, _, _ := n.state(t, "moves"); uid != was {
		t.Error("It was made again.")
	}
	heard.until(t, "the old sync forgets it", func() bool { return slices.Equal(n.holders(t, "moves"), []string{"to"}) })
}

// If one sync cannot render a commit, the prunes of the others of its branch wait for a while. A corrected commit then moves the object;
// without one, the prunes continue.
func TestMoveToABrokenSync(t *testing.T) {
	for name, timeout := range map[string]string{"Corrected": "10m", "Broken": "10s"} {
		t.Run(name, func(t *testing.T) {
			n := newTwoSyncs(t, strings.ToLower("moves-"+name), true)
			n.specs["from"], n.specs["to"] = "  interval: 1s\n  timeout: "+timeout+"\n", "  interval: 1s\n"
			n.process(t, true, n.config, nil).once(t, "from", "to")
			was, _, _ := n.state(t, "moves")
			files := n.moved()
			broken := strings.Replace(files["to/a.yaml"], "kind: ConfigMap", "kind: [", 1)
			n.push(t, map[string]string{"from/a.yaml": files["from/a.yaml"], "to/a.yaml": broken})
			heard := newEvents()
			n.run(t, n.process(t, false, n.config, heard.hear))
			heard.until(t, "the other sync fails", heard.had("to pass true"))
			if uid, by, _ := n.state(t, "moves"); uid != was || by != "from" {
				t.Fatalf("It waits for the other sync: %s of %q", uid, by)
			}
			if name == "Corrected" {
				n.push(t, files)
				heard.until(t, "it moves", func() bool { _, by, _ := n.state(t, "moves"); return by == "to" })
				if uid, _, _ := n.state(t, "moves"); uid != was {
					t.Error("It was made again.")
				}
				return
			}
			heard.until(t, "it is pruned", func() bool { uid, _, _ := n.state(t, "moves"); return uid == "" })
		})
	}
}

// A sync whose repository is gone must not stop the prunes of a sync of another repository, not even for a moment.
func TestPruneBesideADeadRepository(t *testing.T) {
	n := newTwoSyncs(t, "moves-beside-dead", false)
	n.process(t, true, n.config, nil).once(t, "from", "to")
	n.push(t, map[string]string{"from/a.yaml": n.object("stays", "from")})
	n.repos["to"] = repo{dir: n.repos["to"].dir + "-gone"}
	p := n.process(t, false, n.config, nil)
	if _, err := p.of["to"].Once(t.Context()); err == nil {
		t.Fatal("the repository is there")
	}
	if got := lines(p.once(t, "from")["from"]); !slices.Equal(got, []string{"prune moves"}) {
		t.Errorf("The pass prunes at once: %q", got)
	}
}

// expire makes the leases of a dead process expire.
func (n *twoSyncs) expire(t *testing.T) {
	t.Helper()
	leases, err := coordinationv1.NewForConfig(n.config)
	if err != nil {
		t.Fatal(err)
	}
	long := []byte(`{"spec":{"holderIdentity":""}}`)
	for _, sync := range []string{"from", "to"} {
		if _, err := leases.Leases(n.space).Patch(t.Context(), "headgate-"+sync, types.MergePatchType, long, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// Wherever a process dies during a move, the object stays, and the next process finishes the move.
//
//test:long,unraced
func TestEveryCrashOfAMove(t *testing.T) {
	for name, order := range map[string][]string{"OldFirst": {"from", "to"}, "NewFirst": {"to", "from"}} {
		t.Run(name, func(t *testing.T) {
			n := newTwoSyncs(t, strings.ToLower("moves-crash-"+name), true)
			finished := false
			for at := int64(1); !finished; at++ {
				if at > 20 {
					t.Fatal("a move takes more than 20 writes")
				}
				finished = true
				for _, sent := range []bool{false, true} {
					files := map[string]string{"from/a.yaml": n.object("stays", "from") + n.object("moves", "from"), "to/a.yaml": n.object("other", "to")}
					files["from/a.yaml"] += fmt.Sprintf("# %d %t\n", at, sent)
					n.push(t, files)
					n.process(t, true, n.config, nil).once(t, "from", "to")
					n.process(t, true, n.config, nil).once(t, "from", "to")
					was, by, _ := n.state(t, "moves")
					if by != "from" {
						t.Fatalf("it is of %q", by)
					}
					moved := n.moved()
					moved["from/a.yaml"] += fmt.Sprintf("# %d %t\n", at, sent)
					n.push(t, moved)
					death := &fixtures.Death{At: at, Sent: sent, Counts: fixtures.Changes}
					doomed := n.process(t, true, death.Config(n.config), nil)
					for _, sync := range order {
						_, _ = doomed.of[sync].Once(t.Context())
					}
					finished = finished && !death.Came()
					n.expire(t)
					for range 3 {
						n.process(t, true, n.config, nil).once(t, order...)
					}
					if uid, by, _ := n.state(t, "moves"); uid != was || by != "to" {
						t.Fatalf("dying at write %d (%t): it is %s of %q, was %s", at, sent, uid, by, was)
					}
					if holders := n.holders(t, "moves"); !slices.Equal(holders, []string{"to"}) {
						t.Fatalf("dying at write %d (%t): the inventories of %v hold it", at, sent, holders)
					}
				}
			}
		})
	}
}
