package observe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Looker observes a cluster for a sync that never writes. It sends only requests to get, list and watch. It keeps its records in memory
// instead of in an inventory. One pass and one watch may use it at the same time.
type Looker struct {
	reader *Reader

	mu       sync.Mutex
	compared map[manifest.ID]compared // in the cluster's spelling; nil before the first pass
	news     chan struct{}            // receives when compared changed
}

// NewLooker returns a Looker that reads with a Reader.
func NewLooker(reader *Reader) *Looker {
	reader.Use(inventory.Inventory{Sync: reader.Sync}) // it owns nothing, and may have no right to read an inventory
	return &Looker{reader: reader, news: make(chan struct{}, 1)}
}

// WaitsFor returns what the current pass is waiting for; "" if that is not known.
func (l *Looker) WaitsFor() string { return l.reader.WaitsFor() }

// Ready waits until the API server answers, at most for the time of an answer.
func (l *Looker) Ready(ctx context.Context) error { return l.reader.Ready(ctx) }

// compared is the record of one wanted object.
type compared struct {
	digest string      // of the wanted object
	uid    types.UID   // of the live object, current or last
	mark   string      // of the live object; "" if there is none
	was    bool        // the live object has been as wanted at some time
	done   bool        // the current live object was compared
	trial  facts.Trial // the result of the comparison; zero if it is as wanted
}

// still returns the part of the record that still holds for a live object, or nil if there is none, and for the digest of the
// wanted object.
func (c compared) still(live *metav1.PartialObjectMetadata, digest string) compared {
	if c.digest != digest {
		c = compared{digest: digest}
	}
	switch {
	case live == nil:
		return compared{digest: digest, uid: c.uid, was: c.was}
	case c.uid != live.UID || c.mark != inventory.Mark(live):
		return compared{digest: digest, uid: live.UID, mark: inventory.Mark(live), was: c.was}
	}
	return c
}

// Owner returns the owner of CRDs: Crossplane if its API is served. It returns "" if that is not known.
func (l *Looker) Owner(ctx context.Context) (render.Owner, error) {
	s, err := l.reader.Discover(ctx)
	if err != nil {
		return "", err
	}
	if s.ServesCrossplane() {
		return render.OwnerCrossplane, nil
	}
	return "", s.Known(crossplane.KindMRD)
}

// Definitions returns the definitions in the cluster, for a commit that has none of its own.
func (l *Looker) Definitions(ctx context.Context) ([]*catalogue.Definition, error) {
	return l.reader.Definitions(ctx)
}

// Policies returns the policies of the cluster by name.
func (l *Looker) Policies(ctx context.Context) (map[string]crossplane.LivePolicy, error) {
	return l.reader.Policies(ctx)
}

// Packages returns the packages that Crossplane has installed.
func (l *Looker) Packages(ctx context.Context) ([]crossplane.Installed, error) {
	return l.reader.Packages(ctx)
}

// ImageConfigs returns the ImageConfigs of the cluster. None of them is marked as ours, because this sync prunes nothing.
func (l *Looker) ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error) {
	all, _, err := l.reader.imageConfigs(ctx)
	return all, err
}

// Answer answers questions of guards.
func (l *Looker) Answer(ctx context.Context, questions []question.Any) (question.Answers, error) {
	return l.reader.count.Answer(ctx, questions)
}

// Secret reads one Secret in the namespace of the sync.
func (l *Looker) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	return l.reader.Secret(ctx, name)
}

// Observe returns the live state of the wanted objects. It costs two requests for discovery, one for every kind, and one for every
// object that changed since the last pass, live or in the commit.
func (l *Looker) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	c := l.reader
	var err error
	if c.Surface, err = c.Discover(ctx); err != nil {
		return facts.Observed{}, err
	}
	sp, err := api.SpellingOf(want, c.Surface, c.DefaultNamespace)
	if err != nil {
		return facts.Observed{}, err
	}
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: c.Sync, Owner: want.Owner, Entries: map[manifest.ID]inventory.Entry{}},
			Kinds:     c.Surface.Kinds,
			Space:     c.DefaultNamespace,
			Stance:    plan.Looking,
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, Trials: map[manifest.ID]facts.Trial{}},
	}
	if seen, err = demand.AskOthers(seen, want); err != nil {
		return facts.Observed{}, err
	}
	seen.Upstream, err = c.upstream(ctx, want)
	if err == nil || apierrors.IsForbidden(err) { // report all forbidden kinds at once
		err = errors.Join(err, l.find(ctx, &seen, sp))
	}
	if err != nil {
		return facts.Observed{}, err
	}
	return seen, l.compare(ctx, &seen, sp)
}

// find fills in the objects of seen. All missing rights are joined into one error.
func (l *Looker) find(ctx context.Context, seen *facts.Observed, sp api.Spelling) error {
	ids := map[manifest.ID]bool{}
	for _, a := range seen.Asked {
		ids[sp.Actual(a.ID)] = false
	}
	if seen.Want.Owner != render.OwnerCrossplane {
		for _, d := range seen.Want.Definitions { // a CRD may exist although nothing activates it any more
			ids[plan.CRD(d.Name)] = false
		}
	}
	var searches []search
	searches, seen.Unreadable = l.reader.searches(ids, false)
	done := 0
	type result struct {
		found                 []*metav1.PartialObjectMetadata
		forbidden, unreadable error
	}
	results, err := api.InParallel(ctx, l.reader.Concurrency, searches, func(ctx context.Context, s search) (result, error) {
		found, err := l.reader.metadataOf(ctx, s)
		l.reader.TellOf("observe", &done, len(searches), manifest.ID{Group: s.kind.Group, Kind: s.kind.Kind})
		if apierrors.IsForbidden(err) {
			return result{forbidden: err}, nil
		}
		if err != nil && !l.reader.Stops(ctx, err) {
			return result{unreadable: err}, nil
		}
		return result{found: found}, err
	})
	if err != nil {
		return err
	}
	var forbidden []error
	for i, r := range results {
		forbidden = append(forbidden, r.forbidden)
		if r.unreadable != nil {
			seen.Unreadable[searches[i].kind] = facts.Unreadable(searches[i].kind, r.unreadable)
		}
		for _, o := range r.found {
			if _, ok := ids[api.IDOf(o)]; ok {
				seen.Objects[sp.OfCommit(api.IDOf(o))] = o
			}
		}
	}
	return errors.Join(forbidden...)
}

// metadataOf reads the objects of a search: a few by name, more with a list, which is limited to a namespace if all are in the same
// one.
func (c *Reader) metadataOf(ctx context.Context, s search) ([]*metav1.PartialObjectMetadata, error) {
	if len(s.ids) <= few {
		return c.named(ctx, s.kind, s.ids)
	}
	found, err := c.List(ctx, c.Surface, s.kind, spaceOf(s.ids), "")
	return found, c.Explain(err, "list", api.ResourceName(c.Surface, s.kind))
}

// spaceOf returns the namespace of all objects; "" if they are in different ones, or in none.
func spaceOf(ids []manifest.ID) string {
	if len(ids) == 0 {
		return ""
	}
	for _, id := range ids {
		if id.Namespace != ids[0].Namespace {
			return ""
		}
	}
	return ids[0].Namespace
}

// compare compares the objects that exist with those that are wanted, unless the result is known from an earlier pass.
func (l *Looker) compare(ctx context.Context, seen *facts.Observed, sp api.Spelling) error {
	l.mu.Lock()
	before := l.compared
	l.mu.Unlock()
	now := make(map[manifest.ID]compared, len(seen.Asked))
	note := func(a facts.Asked, c compared) {
		now[sp.Actual(a.ID)] = c
		if c.was {
			entry := inventory.Entry{UID: c.uid, Digest: seen.Inventory.Sync.Digest(a.Object)}
			if c.done {
				entry.Mark = c.mark
			}
			seen.Inventory.Entries[a.ID] = entry
		}
		if c.trial.After != nil || c.trial.Err != nil {
			seen.Trials[a.ID] = c.trial
		}
	}
	for _, a := range seen.Asked {
		note(a, before[sp.Actual(a.ID)].still(seen.Objects[a.ID], a.Digest))
	}
	doubtful := slices.DeleteFunc(seen.Doubtful(false), func(a facts.Asked) bool { return now[sp.Actual(a.ID)].done })
	done := 0
	read, err := api.InParallel(ctx, l.reader.Concurrency, doubtful, func(ctx context.Context, a facts.Asked) (compared, error) {
		defer l.reader.Large(ctx, a.Object.Size)()
		c, err := l.reader.compared(ctx, a, sp.Actual(a.ID))
		l.reader.TellOf("observe", &done, len(doubtful), a.ID)
		return c, err
	})
	if err != nil {
		return err
	}
	for i, a := range doubtful {
		c := read[i]
		c.was = c.was || now[sp.Actual(a.ID)].was
		if c.mark == "" { // deleted between the two requests
			delete(seen.Objects, a.ID)
			c.uid = now[sp.Actual(a.ID)].uid
		}
		note(a, c)
	}
	l.mu.Lock()
	l.compared = now
	l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
	return nil
}

// unknown stands for the mark of an object that could not be read. It differs from every mark, so the object is read again.
const unknown = "unknown"

// compared reads an object in the version that the commit uses, and compares the two.
func (c *Reader) compared(ctx context.Context, a facts.Asked, id manifest.ID) (compared, error) {
	want, err := a.Content()
	if err != nil {
		return compared{}, err
	}
	demand.WithoutReferences(a, want)
	if a.Policy.Observes() { // settings for Headgate in the commit are not on objects that others make
		annotations := want.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { _, asked := a.Asks[key]; return asked })
		want.SetAnnotations(annotations)
	}
	version := api.VersionOf(a.APIVersion)
	_, unserved := c.Surface.Resource(api.GroupKind(id), version)
	if unserved != nil {
		version = "" // it exists in another version
	}
	gvr, err := c.Surface.Resource(api.GroupKind(id), version)
	if err != nil {
		return compared{}, err
	}
	live, err := c.Objects.Resource(gvr).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return compared{digest: a.Digest}, nil
	}
	if err != nil {
		explained := c.Explain(err, "get", api.ResourceName(c.Surface, api.GroupKind(id))+" "+id.Name)
		if c.Stops(ctx, err) {
			return compared{}, explained
		}
		return compared{digest: a.Digest, mark: unknown, trial: facts.Trial{Err: explained}}, nil
	}
	now := compared{digest: a.Digest, uid: live.GetUID(), mark: inventory.Mark(live)}
	if now.trial.Err = unserved; unserved != nil {
		return now, nil //nolint:nilerr // it is the object's trouble, and may end without moving it
	}
	now.done = true
	if now.trial = facts.TrialOf(diff.Compare(want, live, c.options.Terms.Ignore)); now.trial.After != nil {
		now.trial = facts.TrialOf(diff.Compare(asStored(want), live, c.options.Terms.Ignore))
	}
	now.was = now.trial.After == nil
	return now, nil
}

// News receives when what is known of the objects has changed. It has one receiver.
func (l *Looker) News() <-chan struct{} { return l.news }

// Marks returns the marks that show whether an object changed; "" for one that does not exist.
func (l *Looker) Marks() map[manifest.ID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks := make(map[manifest.ID]string, len(l.compared))
	for id, c := range l.compared {
		marks[id] = c.mark
	}
	return marks
}
