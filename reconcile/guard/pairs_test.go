package guard

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	rbacGroup  = "rbac.authorization.k8s.io"
	admissions = "admissionregistration.k8s.io"
)

// kindsOfPairs are the kinds of failed and pruned objects, with whether they are in a namespace.
var kindsOfPairs = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "Service"}: true,
	{Group: "apps", Kind: "Deployment"}: true, {Group: "example.org", Kind: "ConfigMap"}: true,
	{Group: rbacGroup, Kind: "Role"}: true, {Group: rbacGroup, Kind: "RoleBinding"}: true, {Group: rbacGroup, Kind: "ClusterRoleBinding"}: false,
	{Group: "example.org", Kind: "RoleBinding"}:                 true,
	{Group: admissions, Kind: "ValidatingWebhookConfiguration"}: false, {Group: admissions, Kind: "MutatingWebhookConfiguration"}: false,
	{Group: admissions, Kind: "ValidatingAdmissionPolicy"}: false, {Group: admissions, Kind: "ValidatingAdmissionPolicyBinding"}: false,
}

// A failure keeps one object of a commit from being written.
type failure struct {
	name string
	// happens changes the server, or the object in the commit, so that its write fails.
	happens func(s *pairs, of *unstructured.Unstructured)
	exists  bool        // the object is on the server already, in an older version
	by      reason.Gate // what the API server names at the start of its refusal
}

// failures are all ways in which a write does not happen. mention is a text that the author of an error may choose.
func failures(mention string) []failure {
	refused := func(err error) func(*pairs, *unstructured.Unstructured) {
		return func(s *pairs, of *unstructured.Unstructured) { s.refused[manifest.IDOf(of)] = err }
	}
	held := func(_ *pairs, of *unstructured.Unstructured) {
		of.SetAnnotations(map[string]string{"kustomize.toolkit.fluxcd.io/force": "enabled"})
	}
	boom := fmt.Errorf("%s is not a valid config key; %q already exists", mention, mention)
	webhook, policy := reason.Gate{Webhook: "w.example.org"}, reason.Gate{Policy: "p", Binding: "b"}
	return []failure{
		{name: "create refused", happens: refused(boom)},
		{name: "update refused", happens: refused(boom), exists: true},
		{name: "dry run refused", happens: func(s *pairs, of *unstructured.Unstructured) { s.known[manifest.IDOf(of)] = boom }, exists: true},
		{name: "create held", happens: held},
		{name: "update held", happens: held, exists: true},
		{name: "unserved", happens: func(s *pairs, of *unstructured.Unstructured) {
			delete(s.Seen.Kinds, manifest.IDOf(of).GroupKind())
			s.unserved = append(s.unserved, manifest.IDOf(of).GroupKind())
		}},
		{name: "waits", happens: func(_ *pairs, of *unstructured.Unstructured) {
			of.SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": "/namespaces/team/ConfigMap/nowhere"})
		}},
		{name: "webhook", happens: refused(reason.Refused(webhook, boom)), by: webhook},
		{name: "policy", happens: refused(reason.Refused(policy, boom)), exists: true, by: policy},
	}
}

// pairs is a server that checks each prune, while the writes of a commit fail.
type pairs struct {
	*testing.T
	*given.Server
	want           render.Desired
	refused, known map[manifest.ID]error
	unserved       []schema.GroupKind
	gates          []reason.Gate
	approved       map[manifest.ID]bool
}

// onServer returns a server that contains some objects of ours, which no commit has removed yet.
func onServer(t *testing.T, objects ...*unstructured.Unstructured) *pairs {
	t.Helper()
	s := &pairs{T: t, Server: given.NewServer(Guarding{MaxPrunes: 1000}.Guards()...), refused: map[manifest.ID]error{}, known: map[manifest.ID]error{}, approved: map[manifest.ID]bool{}}
	for gk, namespaced := range kindsOfPairs {
		s.Seen.Kinds[gk] = plan.Kind{Version: "v1", Resource: strings.ToLower(gk.Kind) + "s", Namespaced: namespaced}
	}
	if _, err := s.Pass(t, s.commit("1", objects...)); err != nil {
		t.Fatal(err)
	}
	for id, live := range s.Seen.Objects {
		if strings.HasSuffix(id.Kind, "WebhookConfiguration") {
			live.ManagedFields = append(live.ManagedFields, given.Wrote("other", "Update", `{"f:webhooks":{"k:{\"name\":\"`+id.Name+`.example.org\"}":{}}}`))
		}
	}
	s.Server.Refuse = s.answer
	s.DryRun = func(id manifest.ID) error { return s.known[id] }
	return s
}

// commit returns a commit with these objects and one that always stays.
func (s *pairs) commit(revision string, objects ...*unstructured.Unstructured) render.Desired {
	s.Helper()
	want := render.Desired{Revision: revision, Objects: []render.Object{given.Wanted(s.T, given.ConfigMap("keep"))}}
	for i, u := range objects {
		o, err := render.NewObject(u, manifest.Origin{Path: fmt.Sprintf("%d.yaml", i), Line: 1})
		if err != nil {
			s.Fatal(err)
		}
		want.Objects = append(want.Objects, o)
	}
	return want
}

// answer refuses writes as the failures demand. It checks every prune against the objects that the server really has.
func (s *pairs) answer(step plan.Step) error {
	if step.Action != plan.Prune {
		return s.refused[step.ID]
	}
	var undone []manifest.ID
	for _, o := range s.want.Objects {
		if !s.Has(o) {
			undone = append(undone, o.ID)
		}
	}
	if len(undone) > 0 && !s.mayGo(step.ID, undone) {
		s.Errorf("%s is pruned while %v are not done", step.ID, undone)
	}
	return nil
}

// mayGo is the table of the guard unfinished, in the words of its documentation.
func (s *pairs) mayGo(id manifest.ID, undone []manifest.ID) bool {
	named := func(name func(reason.Gate) string) bool {
		return slices.ContainsFunc(s.gates, func(g reason.Gate) bool { return name(g) == id.Name })
	}
	isRBAC := func(id manifest.ID) bool { return id.Group == rbacGroup }
	switch id.GroupKind() {
	case schema.GroupKind{Group: admissions, Kind: "ValidatingWebhookConfiguration"}, schema.GroupKind{Group: admissions, Kind: "MutatingWebhookConfiguration"}:
		if named(func(g reason.Gate) string { return strings.TrimSuffix(g.Webhook, ".example.org") }) {
			return true
		}
	case schema.GroupKind{Group: admissions, Kind: "ValidatingAdmissionPolicy"}:
		if named(func(g reason.Gate) string { return g.Policy }) {
			return true
		}
	case schema.GroupKind{Group: admissions, Kind: "ValidatingAdmissionPolicyBinding"}:
		if named(func(g reason.Gate) string { return g.Binding }) {
			return true
		}
	case schema.GroupKind{Group: rbacGroup, Kind: "RoleBinding"}, schema.GroupKind{Group: rbacGroup, Kind: "ClusterRoleBinding"}:
		if !slices.ContainsFunc(undone, isRBAC) {
			return true
		}
	}
	return s.approved[id]
}

// fails makes the writes of a commit fail and the pass prune other objects. It checks that exactly the exceptions are pruned, in each
// pass until the writes succeed.
func (s *pairs) fails(failed []*unstructured.Unstructured, how []failure, prunes []*unstructured.Unstructured) {
	s.Helper()
	var undone []manifest.ID
	for i, u := range failed {
		s.Logf("%s: %s", manifest.IDOf(u), how[i].name)
		how[i].happens(s, u)
		undone = append(undone, manifest.IDOf(u))
	}
	for i, u := range failed {
		if !slices.Contains(s.unserved, manifest.IDOf(u).GroupKind()) { // otherwise, no webhook is asked
			s.gates = append(s.gates, how[i].by)
		}
	}
	s.want = s.commit("2", failed...)
	held := s.prunes(prunes, undone)
	s.approve(held)
	s.prunes(prunes, undone)
	s.mend(failed)
	s.want = s.commit("3", failed...)
	s.prunes(prunes, nil)
}

// prunes makes a pass and checks which objects it prunes.
func (s *pairs) prunes(all []*unstructured.Unstructured, undone []manifest.ID) plan.Plan {
	s.Helper()
	pass, err := s.Pass(s.T, s.want)
	if err != nil {
		s.Fatal(err)
	}
	for _, u := range all {
		id := manifest.IDOf(u)
		if slices.Contains(s.unserved, id.GroupKind()) {
			continue // it cannot be read
		}
		if _, stays := s.Seen.Objects[id]; stays == (len(undone) == 0 || s.mayGo(id, undone)) {
			s.Errorf("%s: it stays: %t", id, stays)
		}
	}
	return pass.Plan()
}

// approve lets a person approve every other prune that the guard unfinished holds.
func (s *pairs) approve(held plan.Plan) {
	entry := render.Approval{By: "alice", Expires: metav1.NewTime(s.Seen.Now.Add(time.Hour))}
	for i, step := range held.Steps {
		if i%2 == 0 && step.IsHeldBy(plan.Unfinished) {
			entry.Digests = append(entry.Digests, step.Approval().Digest)
			s.approved[step.ID] = true
		}
	}
	s.want.Approvals = []render.Approval{entry}
}

// mend removes what made the writes fail.
func (s *pairs) mend(failed []*unstructured.Unstructured) {
	clear(s.refused)
	clear(s.known)
	for _, gk := range s.unserved {
		s.Seen.Kinds[gk] = plan.Kind{Version: "v1", Resource: strings.ToLower(gk.Kind) + "s", Namespaced: kindsOfPairs[gk]}
	}
	s.unserved = nil
	for _, u := range failed {
		u.SetAnnotations(nil)
	}
}

// object returns an object of a kind, in a namespace if the kind has one.
func object(gk schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gk.WithVersion("v1"))
	u.SetName(name)
	if kindsOfPairs[gk] {
		u.SetNamespace(namespace)
	}
	return u
}

func older(u *unstructured.Unstructured) *unstructured.Unstructured {
	old := u.DeepCopy()
	old.SetLabels(map[string]string{"version": "old"})
	return old
}

// TestEveryPairOfFailureAndPrune makes every kind of failure meet prunes of objects of all kinds: with the same name, with another
// name, in another namespace, and with names that error texts and refusals contain.
func TestEveryPairOfFailureAndPrune(t *testing.T) {
	for _, gk := range []schema.GroupKind{
		{Kind: "ConfigMap"}, {Group: "example.org", Kind: "ConfigMap"}, {Group: rbacGroup, Kind: "RoleBinding"}, {Group: admissions, Kind: "ValidatingAdmissionPolicy"},
	} {
		failed := object(gk, "team", "a")
		var prunes []*unstructured.Unstructured
		for _, other := range slices.SortedFunc(maps.Keys(kindsOfPairs), byName) {
			for _, name := range []string{"other/a", "team/a", "team/b", "team/p", "team/w"} {
				namespace, name, _ := strings.Cut(name, "/")
				if u := object(other, namespace, name); manifest.IDOf(u) != manifest.IDOf(failed) && (namespace == "team" || u.GetNamespace() != "") {
					prunes = append(prunes, u)
				}
			}
		}
		for _, f := range failures("b") {
			t.Run(fmt.Sprintf("%s/%s", gk, f.name), func(t *testing.T) {
				before := slices.Clone(prunes)
				if f.exists {
					before = append(before, older(failed))
				}
				onServer(t, before...).fails([]*unstructured.Unstructured{failed.DeepCopy()}, []failure{f}, prunes)
			})
		}
	}
}

func byName(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }

// TestSomePairsOfFailuresAndPrunes does the same with several failures at once, which a seed chooses.
func TestSomePairsOfFailuresAndPrunes(t *testing.T) {
	seed := rand.Uint64()
	chance := rand.New(rand.NewPCG(seed, 0))
	kinds := slices.SortedFunc(maps.Keys(kindsOfPairs), byName)
	some := func() *unstructured.Unstructured {
		return object(kinds[chance.IntN(len(kinds))], []string{"team", "other"}[chance.IntN(2)], []string{"a", "b", "p", "w", "x-w", "p-b"}[chance.IntN(6)])
	}
	for i := range 60 {
		t.Run(fmt.Sprintf("seed %d/%d", seed, i), func(t *testing.T) {
			var failed, prunes, before []*unstructured.Unstructured
			var how []failure
			taken := map[manifest.ID]bool{}
			for n := 2 + chance.IntN(10); n > 0; n-- {
				u := some()
				if taken[manifest.IDOf(u)] {
					continue
				}
				taken[manifest.IDOf(u)] = true
				if len(failed) == 0 || chance.IntN(4) == 0 {
					all := failures([]string{"a", "b", "p", "w"}[chance.IntN(4)])
					f := all[chance.IntN(len(all))]
					if f.exists {
						before = append(before, older(u))
					}
					failed, how = append(failed, u), append(how, f)
					continue
				}
				prunes, before = append(prunes, u), append(before, u)
			}
			onServer(t, before...).fails(failed, how, prunes)
		})
	}
}

// A policy that refuses a write is pruned although another failure was known before it. What depends on the policy still keeps it.
func TestRefusingPolicyIsDependedOn(t *testing.T) {
	for _, depends := range []bool{false, true} {
		configMap := func(name string) *unstructured.Unstructured {
			return object(schema.GroupKind{Kind: "ConfigMap"}, "team", name)
		}
		policy, user := object(schema.GroupKind{Group: admissions, Kind: "ValidatingAdmissionPolicy"}, "", "p"), configMap("user")
		if depends {
			user.SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": admissions + "/ValidatingAdmissionPolicy/p"})
		}
		s := onServer(t, policy, user, older(configMap("known")))
		s.known[manifest.IDOf(configMap("known"))] = given.ErrBoom
		s.refused[manifest.IDOf(configMap("new"))] = reason.Refused(reason.Gate{Policy: "p"}, given.ErrBoom)
		s.gates = []reason.Gate{{Policy: "p"}}
		s.want = s.commit("2", user, configMap("known"), configMap("new"))
		if _, err := s.Pass(t, s.want); err != nil {
			t.Fatal(err)
		}
		if stays := s.Seen.Objects[manifest.IDOf(policy)] != nil; stays != depends {
			t.Errorf("An object depends on it: %t. It stays: %t", depends, stays)
		}
	}
}

var errRefusedOnce = errors.New("not yet")

// A failure that appears and disappears within a pass keeps the prunes until it is over.
func TestPruneAfterARetry(t *testing.T) {
	crd := given.CRD("things", "Thing")
	kindsOf := schema.GroupKind{Group: "example.org", Kind: "Thing"}
	s := onServer(t, object(schema.GroupKind{Kind: "ConfigMap"}, "team", "old"))
	s.Seen.Kinds[kindsOf] = plan.Kind{Version: "v1", Resource: "things", Namespaced: true}
	thing := &unstructured.Unstructured{}
	thing.SetGroupVersionKind(kindsOf.WithVersion("v1"))
	thing.SetNamespace("team")
	thing.SetName("new")
	tries := 0
	s.Server.Refuse = func(step plan.Step) error {
		if step.ID.Kind == "Thing" {
			if tries++; tries == 1 {
				return errRefusedOnce
			}
		}
		return s.answer(step)
	}
	s.want = s.commit("2", crd, thing)
	if _, err := s.Pass(t, s.want); err != nil {
		t.Fatal(err)
	}
	if tries != 2 || s.Seen.Objects[manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "old"}] != nil {
		t.Errorf("after %d tries, the old object stays", tries)
	}
}
