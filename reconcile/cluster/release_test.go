package cluster_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// announce sets the release annotation, like a user.
func (w *world) announce(t *testing.T, u *unstructured.Unstructured, value string) {
	t.Helper()
	gvr := configMaps
	switch u.GetKind() {
	case "ConfigMap":
	case "CustomResourceDefinition":
		gvr = crds
	case "Namespace":
		gvr = namespaces
	default:
		gvr = w.resource(u.GetKind())
	}
	w.patch(t, w.at(gvr, u.GetNamespace()), u.GetName(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, ownership.ReleaseAnnotation, value))
}

// free fails if an object was replaced or still has any trace of a sync.
func free(t *testing.T, was, is *unstructured.Unstructured) {
	t.Helper()
	if is.GetUID() != was.GetUID() || is.GetDeletionTimestamp() != nil {
		t.Fatalf("A release deletes nothing: UID %s, was %s, deleted %v", is.GetUID(), was.GetUID(), is.GetDeletionTimestamp())
	}
	if _, has := is.GetLabels()[inventory.SyncLabel]; has {
		t.Errorf("Our label stays: %v", is.GetLabels())
	}
	if _, has := is.GetAnnotations()[inventory.InventoryAnnotation]; has {
		t.Errorf("Our annotation stays: %v", is.GetAnnotations())
	}
	for _, f := range is.GetManagedFields() {
		if f.Manager == inventory.Manager {
			t.Errorf("Who applies it next is in conflict with us: %v", f)
		}
	}
	if diff := cmp.Diff(was.Object["data"], is.Object["data"]); diff != "" {
		t.Errorf("It stays as it is (-was +is):\n%s", diff)
	}
}

// owns returns the objects in the inventory.
func (w *world) owns(t *testing.T) []string {
	t.Helper()
	inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for id := range inv.Entries {
		all = append(all, id.String())
	}
	slices.Sort(all)
	return all
}

// When a commit drops an object whose release a user announced, by an annotation or in the Sync, the object stays in the cluster
// unchanged, and no sync owns it.
func TestRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		announced string
		terms     func(space string) facts.Terms
	}{
		"Annotated": {reason: "A user annotates the object.", announced: "true"},
		"Odd":       {reason: "An annotation value without another meaning must not delete the object.", announced: "yes"},
		"Listed": {reason: "The Sync lists the object.", terms: func(space string) facts.Terms {
			return facts.Terms{Release: []string{"ConfigMap/" + space + "/leaves"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			leaves, stays := configMap(space, "leaves", "1"), configMap(space, "stays", "1")
			terms := facts.Terms{}
			if tc.terms != nil {
				terms = tc.terms(space)
			}
			w.carry(t, facts.Terms{}, want(t, namespace(space), stays, leaves))
			was := w.mustGet(t, configMaps, space, "leaves")
			if tc.announced != "" {
				w.announce(t, leaves, tc.announced)
			}

			result := w.carry(t, terms, want(t, namespace(space), stays, configMap(space, "leaves", "2")))
			if result.Summary.Updated != 1 || result.Summary.Released != 0 || !slices.ContainsFunc(result.Findings, func(f manifest.Finding) bool { return f.Rule == "release-announced" }) {
				t.Errorf("%s\nWhile the commit declares it, it is applied, and the report tells: %v %v", tc.reason, ended(result), result.Findings)
			}
			was.Object["data"] = map[string]any{"key": "2"}

			commit := want(t, namespace(space), stays)
			if p := planned(t, w.cluster(t, cluster.Options{Terms: terms}), commit); !slices.Contains(actions(p), "release (commit) ConfigMap/"+space+"/leaves") {
				t.Errorf("%s\nThe plan shows it: %v", tc.reason, actions(p))
			}
			result = w.carry(t, terms, commit)
			if diff := cmp.Diff([]string{"release ConfigMap/" + space + "/leaves"}, ended(result)); diff != "" || result.Verdict.ExitCode != 0 {
				t.Errorf("%s\n%+v (-want +got):\n%s", tc.reason, result.Verdict, diff)
			}
			is := w.mustGet(t, configMaps, space, "leaves")
			free(t, was, is)
			if _, has := is.GetAnnotations()[ownership.ReleaseAnnotation]; has {
				t.Errorf("What adopts it next would release it, too: %v", is.GetAnnotations())
			}
			if diff := cmp.Diff([]string{"ConfigMap/" + space + "/stays", "Namespace/" + space}, w.owns(t)); diff != "" {
				t.Errorf("It is forgotten (-want +got):\n%s", diff)
			}
			w.requests.Reset()
			if again := w.carry(t, terms, commit); len(ended(again)) > 0 || again.Verdict.ExitCode != 0 {
				t.Errorf("That was all: %v", ended(again))
			}
			// A commit that declares the object again adopts it, and a later commit prunes it as usual.
			w.carry(t, facts.Terms{}, want(t, namespace(space), stays, configMap(space, "leaves", "2")))
			if result := w.carry(t, facts.Terms{}, commit); result.Summary.Pruned != 1 {
				t.Errorf("An adopted object goes: %v", ended(result))
			}
		})
	}
}

// Deletions that would delete a released object along with others are held: in the pass that releases it, in later passes, and
// during a destroy.
func TestReleaseHoldsWhatWouldDeleteIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		base   func(w *world, space string) []*unstructured.Unstructured // the first object is released, and deleting the second would delete it
		kept   func(w *world, space string) []*unstructured.Unstructured
		owned  bool // whether the second object owns the first
	}{
		"Namespace": {
			reason: "Deleting a namespace deletes all objects in it.",
			base: func(_ *world, space string) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{configMap(space, "leaves", "1"), namespace(space)}
			},
		},
		"CRD": {
			reason: "Deleting a CRD deletes its custom resources.",
			base: func(w *world, space string) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{w.instance("Bucket", space, "leaves"), w.crd("Bucket", "Namespaced"), namespace(space), w.crd("Region", "Cluster")}
			},
			kept: func(w *world, space string) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{namespace(space), w.crd("Region", "Cluster")}
			},
		},
		"Owner": {
			reason: "The garbage collector deletes the dependants of an owner, so the release removes the owner reference before the owner is deleted.",
			base: func(_ *world, space string) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{configMap(space, "leaves", "1"), configMap(space, "owner", "1"), namespace(space)}
			},
			kept: func(_ *world, space string) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{namespace(space)}
			},
			owned: true,
		},
	} {
		for _, ends := range []plan.Stance{plan.Applying, plan.Destroying} {
			t.Run(name+string(ends), func(t *testing.T) {
				w := newWorld(t)
				space, other := w.sync.Namespace+"-app", w.sync.Namespace+"-other"
				more := []*unstructured.Unstructured{namespace(other), configMap(other, "stays", "1")}
				base := tc.base(w, space)
				w.carry(t, facts.Terms{}, want(t, append(base, more...)...))
				gvr := configMaps
				if base[0].GetKind() != "ConfigMap" {
					gvr = w.resource(base[0].GetKind())
				}
				if tc.owned {
					owner := w.mustGet(t, configMaps, space, base[1].GetName())
					w.patch(t, w.at(gvr, space), "leaves", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q}]}}`, owner.GetName(), owner.GetUID()))
				}
				was := w.mustGet(t, gvr, space, "leaves")
				w.announce(t, base[0], "true")

				commit := more
				if tc.kept != nil {
					commit = append(commit, tc.kept(w, space)...)
				}
				end := func() report.Report {
					t.Helper()
					if ends == plan.Applying {
						return w.carry(t, facts.Terms{}, want(t, commit...))
					}
					result, err := reconcilerOf(w.cluster(t, cluster.Options{}), w).Destroy(t.Context(), ends)
					if err != nil {
						t.Fatal(err)
					}
					return result
				}
				result := end()
				held := slices.ContainsFunc(result.Steps, func(s report.Step) bool { return s.ID == manifest.IDOf(base[1]) && s.Action == plan.Hold })
				if result.Summary.Released != 1 || held == tc.owned {
					t.Errorf("%s\nIt is released, and what would delete it is held: %v", tc.reason, ended(result))
				}
				free(t, was, w.mustGet(t, gvr, space, "leaves"))
				end()
				if owners := w.mustGet(t, gvr, space, "leaves").GetOwnerReferences(); len(owners) > 0 {
					t.Errorf("The garbage collector would delete it: %v", owners)
				}
				free(t, was, w.mustGet(t, gvr, space, "leaves"))
			})
		}
	}
}

// A process may die before or after every write of a release. The next passes finish the release and delete nothing. The request
// may be lost by then: it came from the verb, or the annotation was already removed.
//
//test:long,unraced
func TestEveryCrashOfARelease(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"Stored": false, "InventoryLost": true} {
		for _, how := range []string{"annotation", "verb", "destroy"} {
			t.Run(name+how, func(t *testing.T) {
				if lost && how != "annotation" {
					return // without the inventory, the request of a verb is lost; see TestReleaseAfterALoss
				}
				w := newWorld(t)
				space := w.sync.Namespace + "-app"
				stays := configMap(space, "stays", "1")
				finished := false
				for n := int64(1); !finished; n++ {
					if n > 20 {
						t.Fatal("a release takes more than 20 writes")
					}
					finished = true
					for _, sent := range []bool{false, true} {
						round := fmt.Sprintf("leaves-%d-%t", n, sent)
						leaves := configMap(space, round, "1")
						w.carry(t, facts.Terms{}, want(t, namespace(space), stays, leaves))
						was := w.mustGet(t, configMaps, space, round)
						commit := want(t, namespace(space), stays)
						death := dying(n, sent)
						doomed := reconcilerOf(clusterOf(t, death.Config(w.config), w, cluster.Options{Concurrency: 1}), w)
						switch how {
						case "verb":
							w.pause(t, space, round, true)
							if result := w.carry(t, facts.Terms{}, commit); result.Summary.Held != 1 {
								t.Fatalf("the prune is to be held: %v", ended(result))
							}
							_, _ = doomed.Release(t.Context(), []string{"ConfigMap/" + space + "/" + round}, false)
							w.pause(t, space, round, false)
						case "destroy":
							w.announce(t, leaves, "true")
							_, _ = doomed.Destroy(t.Context(), plan.Destroying)
						default:
							w.announce(t, leaves, "true")
							_, _, _ = doomed.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
						}
						finished = finished && !death.Came()
						w.expire(t)
						if lost {
							w.loses(t)
						}
						begun := how != "verb" || w.began(t, space, round)
						if is, err := w.at(configMaps, space).Get(t.Context(), round, metav1.GetOptions{}); err != nil || is.GetUID() != was.GetUID() {
							t.Fatalf("dying at write %d (%t): %v", n, sent, err)
						}
						if !begun {
							w.announce(t, leaves, "true") // the verb failed before it stored anything, and its user repeats the request
						}
						for range 3 {
							w.carry(t, facts.Terms{}, commit)
						}
						is, err := w.at(configMaps, space).Get(t.Context(), round, metav1.GetOptions{})
						if err != nil {
							t.Fatalf("Dying at write %d (%t), it was deleted: %v", n, sent, err)
						}
						free(t, was, is)
						if slices.Contains(w.owns(t), "ConfigMap/"+space+"/"+round) {
							t.Fatalf("Dying at write %d (%t), it is not forgotten", n, sent)
						}
						if p := planned(t, w.cluster(t, cluster.Options{}), commit); p.Writes() || p.Remembers() || p.Count(plan.Hold) > 0 {
							t.Fatalf("Dying at write %d (%t), something is left: %v", n, sent, actions(p))
						}
					}
				}
			})
		}
	}
}

// pause pauses or resumes the reconciliation of an object.
func (w *world) pause(t *testing.T, space, name string, paused bool) {
	t.Helper()
	value := "null"
	if paused {
		value = `"true"`
	}
	w.patch(t, w.at(configMaps, space), name, `{"metadata":{"annotations":{"crossplane.io/paused":`+value+`}}}`)
}

// began reports whether the release of an object has begun or is complete.
func (w *world) began(t *testing.T, space, name string) bool {
	t.Helper()
	inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, owned := inv.Entries[manifest.ID{Kind: "ConfigMap", Namespace: space, Name: name}]
	return !owned || e.Releasing
}

// Another writer may adopt the object between the plan and the write. Its fields must stay.
func TestReleaseBesideAnotherWriter(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	stays, leaves := configMap(space, "stays", "1"), configMap(space, "leaves", "1")
	other := *w
	other.sync.Name = "other"
	for name, act := range map[string]func(t *testing.T){
		"AnotherSync": func(t *testing.T) { //nolint:thelper // it is the part of the test that differs
			applied(t, other.cluster(t, cluster.Options{}), want(t, leaves))
			if is := w.mustGet(t, configMaps, space, "leaves"); !inventory.Ours(is, other.sync) {
				t.Fatalf("The other sync takes it, since it moves there: %v", is.GetLabels())
			}
		},
		"Helm": func(t *testing.T) { //nolint:thelper // the same
			w.patch(t, w.at(configMaps, space), "leaves", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"app","meta.helm.sh/release-namespace":"prod"}}}`)
		},
		"Recreated": func(t *testing.T) { //nolint:thelper // the same
			if err := w.at(configMaps, space).Delete(t.Context(), "leaves", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			create(t, w.at(configMaps, space), configMap(space, "leaves", "theirs"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), stays, leaves))
			w.announce(t, leaves, other.sync.String())
			c := w.cluster(t, cluster.Options{})
			p := planned(t, c, want(t, namespace(space), stays))
			if p.Count(plan.Release) != 1 {
				t.Fatalf("got %v", actions(p))
			}
			act(t)
			then := w.mustGet(t, configMaps, space, "leaves")
			done, err := c.Apply(t.Context(), p)
			if err != nil || len(done) != 1 || done[0].Err != nil {
				t.Fatalf("%v %v", done, err)
			}
			now := w.mustGet(t, configMaps, space, "leaves")
			switch name {
			case "Helm":
				free(t, then, now)
				if now.GetAnnotations()["meta.helm.sh/release-name"] != "app" {
					t.Errorf("What another tool wrote stays: %v", now.GetAnnotations())
				}
			default:
				if diff := cmp.Diff(then.Object, now.Object); diff != "" {
					t.Errorf("What is another's is not touched (-then +now):\n%s", diff)
				}
			}
			if slices.Contains(w.owns(t), "ConfigMap/"+space+"/leaves") {
				t.Error("It is forgotten.")
			}
			if err := w.at(configMaps, space).Delete(t.Context(), "leaves", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			_ = w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "headgate-other", metav1.DeleteOptions{})
		})
	}
}

// An object whose move is announced keeps its UID, whichever of the two syncs runs first, even while both commits declare it.
func TestMoveBetweenSyncs(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"NewFirst":            {"to", "from", "from", "to"},
		"OldFirst":            {"from", "to", "from", "to"},
		"BothDeclareIt":       {"both", "to", "both", "from", "to"},
		"BothDeclareItBefore": {"both", "from", "to", "both"},
		"AnnouncedInGit":      {"from", "to", "from", "to"}, // the release leaves no field manager on the object
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			to := *w
			to.sync.Name = "to"
			stays, moves := configMap(space, "stays", "1"), configMap(space, "moves", "1")
			w.carry(t, facts.Terms{}, want(t, namespace(space), stays, moves))
			was := w.mustGet(t, configMaps, space, "moves")
			commits := map[string]render.Desired{
				"from": want(t, namespace(space), stays), "both": want(t, namespace(space), stays, moves),
				"to": want(t, configMap(space, "moves", "2"), configMap(space, "others", "1")),
			}
			if result := to.carry(t, facts.Terms{}, commits["to"]); result.Summary.Held != 1 {
				t.Fatalf("Without an announcement nothing is taken from a sync: %v", ended(result))
			}
			if name == "AnnouncedInGit" {
				announces := moves.DeepCopy()
				announces.SetAnnotations(map[string]string{ownership.ReleaseAnnotation: to.sync.String()})
				w.carry(t, facts.Terms{}, want(t, namespace(space), stays, announces))
			} else {
				w.announce(t, moves, to.sync.String())
			}
			for _, of := range order {
				s := w
				if of == "to" {
					s = &to
				}
				result := s.carry(t, facts.Terms{}, commits[of])
				if result.Verdict.ExitCode != 0 {
					t.Errorf("The pass over %q: %v", of, ended(result))
				}
				if is := w.mustGet(t, configMaps, space, "moves"); is.GetUID() != was.GetUID() || is.GetDeletionTimestamp() != nil {
					t.Fatal("It was made again.")
				}
			}
			is := w.mustGet(t, configMaps, space, "moves")
			if !inventory.Ours(is, to.sync) || value(t, is) != "2" {
				t.Errorf("It is of the other sync: %v %v", is.GetLabels(), is.Object["data"])
			}
			if id := "ConfigMap/" + space + "/moves"; slices.Contains(w.owns(t), id) || !slices.Contains(to.owns(t), id) {
				t.Errorf("It is in the inventory of one sync: %v, %v", w.owns(t), to.owns(t))
			}
			for i, c := range []struct {
				w *world
				d render.Desired
			}{{w, commits["from"]}, {w, commits["both"]}, {&to, commits["to"]}} {
				if p := planned(t, c.w.cluster(t, cluster.Options{}), c.d); p.Writes() || p.Remembers() || p.Count(plan.Hold) > 0 {
					t.Errorf("Both are at rest (%d): %v", i, actions(p))
				}
			}
			if result, err := reconcilerOf(w.cluster(t, cluster.Options{}), w).Destroy(t.Context(), plan.Destroying); err != nil {
				t.Errorf("%v %v", err, ended(result))
			}
			if w.mustGet(t, configMaps, space, "moves").GetUID() != was.GetUID() {
				t.Error("The end of the old sync does not concern it.")
			}
			if result := to.carry(t, facts.Terms{}, want(t, configMap(space, "others", "1"))); result.Summary.Pruned != 1 {
				t.Errorf("The new sync prunes it as any other object: %v", ended(result))
			}
		})
	}
}

// The verb releases objects by name, and explains what is wrong with a name.
func TestReleaseByName(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	stays, leaves := configMap(space, "stays", "1"), configMap(space, "leaves", "1")
	w.carry(t, facts.Terms{}, want(t, namespace(space), stays, leaves))
	id := "ConfigMap/" + space + "/leaves"
	released := func(dry bool, ids ...string) (report.Report, error) {
		return reconcilerOf(w.cluster(t, cluster.Options{}), w).Release(t.Context(), ids, dry)
	}
	for text, wants := range map[string]string{
		id:                            "the next pass would adopt it again; announce the release",
		"ConfigMap/" + space + "/lea": "does not own ConfigMap/" + space + "/lea; write " + id,
		"Secret/nothing/alike":        "run 'headgate status --full'",
		"leaves":                      "write " + id,
		"":                            "does not own",
	} {
		if _, err := released(false, text); err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("%q: %v, want %q", text, err, wants)
		}
	}
	w.pause(t, space, "leaves", true)
	commit := want(t, namespace(space), stays)
	w.carry(t, facts.Terms{}, commit)
	was := w.mustGet(t, configMaps, space, "leaves")
	if result, err := released(true, id); err != nil || result.Summary.Released != 1 || !inventory.Ours(w.mustGet(t, configMaps, space, "leaves"), w.sync) {
		t.Errorf("A dry run shows it: %v %v", err, ended(result))
	}
	if _, err := released(false, id, "ConfigMap/"+space+"/stays"); err == nil || !inventory.Ours(w.mustGet(t, configMaps, space, "leaves"), w.sync) {
		t.Errorf("With one wrong name, nothing is released: %v", err)
	}
	if result, err := released(false, id); err != nil || result.Summary.Released != 1 {
		t.Fatalf("%v %v", err, ended(result))
	}
	free(t, was, w.mustGet(t, configMaps, space, "leaves"))
	if result := w.carry(t, facts.Terms{}, commit); result.Verdict.ExitCode != 0 || len(ended(result)) != 0 {
		t.Errorf("The hold is over: %v", ended(result))
	}
}

// Users may misspell a name in the Sync. The report says so while the object still exists.
func TestReleaseListedInVain(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	terms := facts.Terms{Release: []string{"ConfigMap/" + space + "/setings", "ConfigMap/long/gone"}}
	result := w.carry(t, terms, want(t, namespace(space), configMap(space, "settings", "1")))
	var told []string
	for _, f := range result.Findings {
		if f.Rule == "release-of-nothing" {
			told = append(told, string(f.Severity)+": "+f.Message+"; "+f.Fix)
		}
	}
	if diff := cmp.Diff([]string{
		"note: release of the Sync lists ConfigMap/long/gone, which this sync does not own; remove it from the list",
		"warning: release of the Sync lists ConfigMap/" + space + "/setings, which this sync does not own; write ConfigMap/" + space + "/settings if that is meant, or remove it from the list",
	}, told); diff != "" || result.Verdict.ExitCode != 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// If a release fails, the object and its namespace stay until the release succeeds.
func TestReleaseIsRefused(t *testing.T) {
	w := newWorld(t)
	space, other := w.sync.Namespace+"-app", w.sync.Namespace+"-other"
	leaves := configMap(space, "leaves", "1")
	more := []*unstructured.Unstructured{namespace(other), configMap(other, "stays", "1")}
	w.carry(t, facts.Terms{}, want(t, append(more, namespace(space), leaves)...))
	was := w.mustGet(t, configMaps, space, "leaves")
	w.announce(t, leaves, "true")
	refusing := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/configmaps/leaves") {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused","reason":"Forbidden","code":403}`
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
		}
		return next.RoundTrip(req)
	})
	commit := want(t, more...)
	doomed := reconcilerOf(clusterOf(t, refusing, w, cluster.Options{}), w)
	result, _, err := doomed.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
	if is := w.mustGet(t, configMaps, space, "leaves"); err != nil || result.Summary.Failed != 1 || is.GetUID() != was.GetUID() || is.GetDeletionTimestamp() != nil {
		t.Fatalf("%v %v", err, ended(result))
	}
	w.patch(t, w.at(configMaps, space), "leaves", `{"metadata":{"annotations":{"`+ownership.ReleaseAnnotation+`":null}}}`)
	w.carry(t, facts.Terms{}, commit)
	free(t, was, w.mustGet(t, configMaps, space, "leaves"))
}

// After a release nobody owns the object, and its fields have no manager. A sync that declares it later adopts it as any object without an
// owner, with another value too, and prunes what leaves the commit again. A sync that may not adopt is refused.
func TestReleasedObjectIsAdopted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		another bool
		terms   facts.Terms
		refused bool
		kubectl bool
	}{
		"Kubectl":     {reason: "So it is for other tools.", kubectl: true},
		"SameSync":    {reason: "It is an object without an owner for the sync that released it, too."},
		"AnotherSync": {reason: "So it is for every sync.", another: true},
		"Refused":     {reason: "The Sync adopts nothing.", another: true, terms: facts.Terms{Adoption: facts.AdoptNone}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			leaves := configMap(space, "leaves", "1")
			w.carry(t, facts.Terms{}, want(t, namespace(space), configMap(space, "stays", "1"), leaves))
			was := w.mustGet(t, configMaps, space, "leaves")
			release := facts.Terms{Release: []string{"ConfigMap/" + space + "/leaves"}}
			if result := w.carry(t, release, want(t, namespace(space), configMap(space, "stays", "1"))); result.Summary.Released != 1 {
				t.Fatalf("it is not released: %v", ended(result))
			}
			free(t, was, w.mustGet(t, configMaps, space, "leaves"))

			by, beside := *w, []*unstructured.Unstructured{namespace(space), configMap(space, "stays", "1")}
			if tc.another {
				by.sync.Name, beside = "other", []*unstructured.Unstructured{configMap(space, "theirs", "1")}
			}
			if tc.kubectl {
				applied, err := w.at(configMaps, space).Apply(t.Context(), "leaves", configMap(space, "leaves", "2"), metav1.ApplyOptions{FieldManager: "kubectl"})
				if err != nil || applied.GetUID() != was.GetUID() {
					t.Errorf("%s\n%v", tc.reason, err)
				}
				return
			}
			result := by.carry(t, tc.terms, want(t, append(beside, configMap(space, "leaves", "2"))...))
			is := w.mustGet(t, configMaps, space, "leaves")
			data, _ := is.Object["data"].(map[string]any)
			if tc.refused {
				if data["key"] != "1" || result.Verdict.ExitCode != 3 {
					t.Errorf("%s\n%v: %v, exit %d", tc.reason, data, ended(result), result.Verdict.ExitCode)
				}
				return
			}
			if result.Verdict.ExitCode != 0 || is.GetUID() != was.GetUID() || data["key"] != "2" || is.GetLabels()[inventory.SyncLabel] != by.sync.Key() {
				t.Fatalf("%s\n%v: %v, exit %d", tc.reason, is.Object, ended(result), result.Verdict.ExitCode)
			}
			if again := by.carry(t, tc.terms, want(t, append(beside, configMap(space, "leaves", "2"))...)); len(ended(again)) > 0 || again.Verdict.ExitCode != 0 {
				t.Errorf("%s\nonce more: %v", tc.reason, ended(again))
			}
			if result := by.carry(t, tc.terms, want(t, beside...)); result.Summary.Pruned != 1 {
				t.Errorf("%s\nit leaves the commit: %v", tc.reason, ended(result))
			}
		})
	}
}
