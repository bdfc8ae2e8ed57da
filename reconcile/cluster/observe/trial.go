package observe

import (
	"context"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// A tried is a trial, and whether the object turned out to be gone.
type tried struct {
	facts.Trial
	gone bool
}

// try dry-runs the apply of every doubtful object.
func (c *Reader) try(ctx context.Context, seen *facts.Observed, sp api.Spelling) error {
	doubtful := seen.Doubtful(c.options.TryCreates)
	if c.options.TryCreates {
		doubtful = slices.DeleteFunc(doubtful, needsComing(seen, sp))
	}
	done := 0
	trials, err := api.InParallel(ctx, c.Concurrency, doubtful, func(ctx context.Context, a facts.Asked) (tried, error) {
		defer c.Large(ctx, a.Object.Size)()
		_, exists := seen.Objects[a.ID]
		t, err := c.tryOne(ctx, a, sp.Actual(a.ID), exists, seen)
		c.TellOf("observe", &done, len(doubtful), a.ID)
		return t, err
	})
	if err != nil {
		return err
	}
	for i, t := range trials {
		id := doubtful[i].ID
		if t.gone {
			delete(seen.Objects, id)
			continue
		}
		seen.Trials[id] = t.Trial
	}
	return nil
}

// needsComing returns a function that reports whether an object cannot be tried yet, because the API server refuses it without
// another object of the commit: its namespace, or the role of a binding, whose rights the API server compares with Headgate's.
func needsComing(seen *facts.Observed, sp api.Spelling) func(facts.Asked) bool {
	coming := map[manifest.ID]bool{}
	for _, a := range seen.Asked {
		if _, exists := seen.Objects[a.ID]; !exists {
			coming[sp.Actual(a.ID)] = true
		}
	}
	return func(a facts.Asked) bool {
		id := sp.Actual(a.ID)
		return coming[manifest.ID{Kind: "Namespace", Name: id.Namespace}] || coming[roleOf(a.Object, id)]
	}
}

// roleOf returns the role of a RoleBinding or ClusterRoleBinding. For other objects, and for bindings without a role, it returns
// the zero ID, which no object has.
func roleOf(binding render.Object, id manifest.ID) manifest.ID {
	if id.Group != rbac.GroupName || !strings.HasSuffix(id.Kind, "RoleBinding") {
		return manifest.ID{}
	}
	u, err := binding.Content()
	if err != nil {
		return manifest.ID{}
	}
	role := manifest.ID{Group: rbac.GroupName}
	role.Kind, _, _ = unstructured.NestedString(u.Object, "roleRef", "kind")
	role.Name, _, _ = unstructured.NestedString(u.Object, "roleRef", "name")
	if role.Kind == "Role" {
		role.Namespace = id.Namespace
	}
	return role
}

// A taking reports whether to take the conflicting fields of a live object.
type taking func(e *api.ConflictError, live *unstructured.Unstructured) bool

// takesIn returns a taking that decides which conflicting fields of an object to take from their managers.
func (c *Reader) takesIn(a facts.Asked, seen *facts.Observed) taking {
	return func(e *api.ConflictError, live *unstructured.Unstructured) bool {
		if e = without(e, demand.Adopting(*seen, a, live).Managers(live)); len(e.Conflicts) == 0 {
			return true
		}
		return c.options.Terms.Take || seen.AsBefore(a.Object) && byHand(e, live) || (seen.Mine(a.ID, live) || ownership.MovesTo(live, c.Sync) || seen.ClaimOn(a.ID, live).Sync != "") && withNobody(e) ||
			seen.Restored(a.ID, live) && byRestorer(e, live)
	}
}

// without returns the conflict without the parts with some managers.
func without(e *api.ConflictError, managers []string) *api.ConflictError {
	return &api.ConflictError{Conflicts: slices.DeleteFunc(slices.Clone(e.Conflicts), func(c api.Conflict) bool { return slices.Contains(managers, c.Manager) })}
}

// tryOne dry-runs the apply of one object. A problem with the object is part of the trial; a problem with the API server is an
// error. If we have applied the object exactly as it is wanted now, the dry run takes back fields of manual edits. From other owned
// objects, it takes fields without a known manager. Depending on the terms of the sync, it takes the fields of all managers.
func (c *Reader) tryOne(ctx context.Context, a facts.Asked, id manifest.ID, exists bool, seen *facts.Observed) (tried, error) {
	if a.Policy.Observes() {
		return c.compareOne(ctx, a, id)
	}
	sent, err := demand.Sent(c.Sync, a.Object)
	if err != nil {
		return tried{}, err
	}
	gvr, unserved := c.Surface.Resource(api.GroupKind(id), api.VersionOf(a.APIVersion))
	if unserved != nil {
		return tried{Trial: facts.Trial{Err: unserved}}, nil //nolint:nilerr // it is the object's trouble
	}
	at := c.Objects.Resource(gvr).Namespace(id.Namespace)
	var t tried
	var live *unstructured.Unstructured
	if exists {
		live, err = at.Get(ctx, id.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return tried{gone: true}, nil
		}
		if err != nil {
			return c.untried(ctx, err, c.Explain(err, "get", api.ResourceName(c.Surface, api.GroupKind(id))+" "+id.Name))
		}
	}
	if live != nil {
		if migration, needed, err := c.migration(live, a.APIVersion, id); needed || err != nil {
			migration.Err = err
			return tried{Trial: migration}, nil //nolint:nilerr // it is the object's trouble
		}
	}
	ctx = api.Conceal(ctx, a.Mask())
	after, err := c.tryWays(ctx, at, sent, live, c.takesIn(a, seen), &t.Trial)
	if err == nil && live != nil {
		if how := demand.Adopting(*seen, a, live); how != (ownership.Taking{}) {
			t.Adopts = takeOver(ctx, at, live, after, a.APIVersion, how)
		}
	}
	switch {
	case err != nil && api.OfObject(err):
		t.Live, t.Err = live, c.Refusal(err, "patch", id)
		return t, nil
	case err != nil:
		t.Live = live
		return c.untried(ctx, err, c.Explain(err, "try the apply of", id.Brief()), t.Trial)
	case live == nil || differ(live, after) || !t.Adopts.None():
		t.Live, t.After = live, after
		return t, nil
	case demand.LostFields(*seen, a, live):
		return tried{Trial: facts.Trial{Live: live}}, nil
	}
	return tried{}, nil
}

// untried returns the result for an object whose request failed: a problem of the object, unless the API server does
// not answer other requests either.
func (c *Reader) untried(ctx context.Context, err, explained error, so ...facts.Trial) (tried, error) {
	if c.Stops(ctx, err) {
		return tried{}, explained
	}
	var t tried
	if len(so) > 0 {
		t.Trial = so[0]
	}
	t.Err = explained
	return t, nil
}

// compareOne compares an observe-only object with the wanted one, and writes nothing.
func (c *Reader) compareOne(ctx context.Context, a facts.Asked, id manifest.ID) (tried, error) {
	now, err := c.compared(ctx, a, id)
	return tried{Trial: now.trial, gone: now.mark == ""}, err
}

// tryWays tries the ways to send an object without its ignored fields, until one leaves these fields to others. It records in the
// trial what was sent, and which fields that takes from whom.
func (c *Reader) tryWays(ctx context.Context, at dynamic.ResourceInterface, sent, live *unstructured.Unstructured, takes taking, t *facts.Trial) (*unstructured.Unstructured, error) {
	if live == nil {
		return api.DryRun(ctx, at, sent, false)
	}
	var after *unstructured.Unstructured
	var err error
	ways := c.options.Terms.Ignore.Withhold(sent, live, c.Sync)
	for _, way := range ways {
		t.TakenBy = nil
		after, err = api.DryRun(ctx, at, way, false)
		if conflict := api.ConflictIn(err); conflict != nil && takes(conflict, live) {
			t.TakenBy = taken(conflict)
			after, err = api.DryRun(ctx, at, way, true)
		}
		if len(ways) > 1 {
			t.Sent = way
		}
		if err != nil && !api.OfObject(err) || err == nil && c.options.Terms.Ignore.Leaves(sent, live, after) {
			break
		}
	}
	return after, err
}

// byHand reports whether all managers of a conflict own their fields through updates, as kubectl edit does. An apply is
// intentional, so a manager with an apply does not count.
func byHand(e *api.ConflictError, live *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(e.Conflicts, func(c api.Conflict) bool {
		return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == c.Manager && f.Operation == metav1.ManagedFieldsOperationApply
		})
	})
}

// byRestorer reports whether all managers of a conflict wrote our marks with an update, or are unknown. A tool that restores an
// object without its managed fields writes all of it.
func byRestorer(e *api.ConflictError, live *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(e.Conflicts, func(c api.Conflict) bool {
		return c.Manager != ownership.Nobody && !inventory.WroteMarks(live, c.Manager)
	})
}

// withNobody reports whether a conflict is only with the API server's name for an unknown manager. Fields have no known manager if,
// for example, the managed fields were wiped.
func withNobody(e *api.ConflictError) bool {
	return !slices.ContainsFunc(e.Conflicts, func(c api.Conflict) bool { return c.Manager != ownership.Nobody })
}

// taken returns the fields of a conflict, by manager, in the notation of plans.
func taken(e *api.ConflictError) []diff.Taken {
	var all []diff.Taken
	for _, c := range e.Conflicts {
		t := diff.Taken{Manager: c.Manager}
		for _, field := range c.Fields {
			t.Fields = append(t.Fields, changePath(field))
		}
		all = append(all, t)
	}
	return all
}

var namedItem = regexp.MustCompile(`^\[name="([^"]*)"\]`)

// changePath turns a field in the API server's notation, ".spec.versions[name=\"v1\"].served", into the path of a
// change: "spec.versions[v1].served". For an item without a name, it returns the list.
func changePath(field string) string {
	path, rest := "", strings.TrimPrefix(field, ".")
	for {
		before, _, indexed := strings.Cut(rest, "[")
		path += before
		if rest = rest[len(before):]; !indexed {
			return path
		}
		name := namedItem.FindStringSubmatch(rest)
		if name == nil {
			return path
		}
		path += "[" + name[1] + "]"
		rest = rest[len(name[0]):]
	}
}

// differ reports whether an apply would change anything: the content of the object, or the fields that we own in it.
func differ(live, after *unstructured.Unstructured) bool {
	return !equality.Semantic.DeepEqual(diff.Bare(live).Object, diff.Bare(after).Object) ||
		!reflect.DeepEqual(ownFields(live), ownFields(after))
}

// ownFields returns the managed fields entries of our applies, without their time.
func ownFields(u *unstructured.Unstructured) []any {
	entries, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	var ours []any
	for _, e := range list {
		entry, _ := e.(map[string]any)
		if entry["manager"] == inventory.Manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) {
			entry = maps.Clone(entry)
			delete(entry, "time")
			ours = append(ours, entry)
		}
	}
	return ours
}

// takeOver returns the fields that an apply takes over from other managers of an object. after is the
// object after the apply; takeOver removes fields from it that have no manager then. Fields that the API server sets
// itself do not count as leftovers, whichever tool manages them.
func takeOver(ctx context.Context, at dynamic.ResourceInterface, live, after *unstructured.Unstructured, apiVersion string, how ownership.Taking) ownership.Takeover {
	t := ownership.UpdateOf(live, after, how).TakeOver(apiVersion).Reclaim(ownership.Applied(live)).Takeover
	if t.None() {
		return t
	}
	if len(t.Left) > 0 {
		if without, err := api.Removed(ctx, at, live, t.Rest); err == nil { // an error means that the API server requires the fields
			t = t.Without(ownership.Returned(live.Object, without.Object, t.Rest))
		}
	}
	ownership.Remove(after.Object, t.Goes)
	if t.Forgets {
		unstructured.RemoveNestedField(after.Object, "metadata", "annotations", ownership.LastApplied)
	}
	return t
}
