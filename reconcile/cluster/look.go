package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

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
	"k8s.io/client-go/rest"
)

// A Looker observes a cluster for a sync that never writes. It needs only the rights to get, list and watch, and sends no other
// requests. It keeps its records in memory instead of in an inventory. One pass and one watch may use it at the same time.
type Looker struct {
	cluster *Cluster

	mu       sync.Mutex
	compared map[manifest.ID]compared // in the cluster's spelling; nil before the first pass
	news     chan struct{}            // receives when compared changed
}

// WaitsFor returns what the current pass is waiting for; "" if that is not known.
func (l *Looker) WaitsFor() string { return l.cluster.WaitsFor() }

// Ready waits until the API server answers, at most for the time of an answer.
func (l *Looker) Ready(ctx context.Context) error { return l.cluster.Ready(ctx) }

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

// NewLooker returns a Looker for the cluster of a configuration. It sends no request.
func NewLooker(config *rest.Config, of inventory.Sync, options Options) (*Looker, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet {
				return nil, fmt.Errorf("%s was not sent: this sync only looks", req.Method)
			}
			return next.RoundTrip(req)
		})
	})
	shares := cmp.Or(options.Shares, &Shares{})
	shares.mu.Lock()
	through := shares.throttle(config.Host)
	shares.mu.Unlock()
	c, err := connect(config, of, options, through) // it watches also objects without our label, and so shares no watch
	if err != nil {
		return nil, err
	}
	c.owned = &inventory.Inventory{Sync: of} // it owns nothing, and may have no right to read an inventory
	return &Looker{cluster: c, news: make(chan struct{}, 1)}, nil
}

// Owner returns the owner of CRDs: Crossplane if its API is served. It returns "" if that is not known.
func (l *Looker) Owner(ctx context.Context) (render.Owner, error) {
	s, err := l.cluster.discover(ctx)
	if err != nil {
		return "", err
	}
	if s.servesCrossplane() {
		return render.OwnerCrossplane, nil
	}
	return "", s.known(crossplane.KindMRD)
}

// Definitions returns the definitions in the cluster, for a commit that has none of its own.
func (l *Looker) Definitions(ctx context.Context) ([]*catalogue.Definition, error) {
	return l.cluster.Definitions(ctx)
}

// Policies returns the policies of the cluster by name.
func (l *Looker) Policies(ctx context.Context) (map[string]crossplane.LivePolicy, error) {
	return l.cluster.Policies(ctx)
}

// Packages returns the packages that Crossplane has installed.
func (l *Looker) Packages(ctx context.Context) ([]crossplane.Installed, error) {
	return l.cluster.Packages(ctx)
}

// ImageConfigs returns the ImageConfigs of the cluster. None of them is marked as ours, because this sync prunes nothing.
func (l *Looker) ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error) {
	all, _, err := l.cluster.imageConfigs(ctx)
	return all, err
}

// Answer answers questions of guards.
func (l *Looker) Answer(ctx context.Context, questions []question.Any) (question.Answers, error) {
	return l.cluster.Answer(ctx, questions)
}

// Secret reads one Secret in the namespace of the sync.
func (l *Looker) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	return l.cluster.Secret(ctx, name)
}

// Observe returns the live state of the wanted objects. It costs two requests for discovery, one for every kind, and one for every
// object that changed since the last pass, live or in the commit.
func (l *Looker) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	c := l.cluster
	var err error
	if c.surface, err = c.discover(ctx); err != nil {
		return facts.Observed{}, err
	}
	sp, err := spellingOf(want, c.surface, c.options.DefaultNamespace)
	if err != nil {
		return facts.Observed{}, err
	}
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: c.sync, Owner: want.Owner, Entries: map[manifest.ID]inventory.Entry{}},
			Kinds:     c.surface.kinds,
			Space:     c.options.DefaultNamespace,
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
func (l *Looker) find(ctx context.Context, seen *facts.Observed, sp spelling) error {
	ids := map[manifest.ID]bool{}
	for _, a := range seen.Asked {
		ids[sp.actual(a.ID)] = false
	}
	if seen.Want.Owner != render.OwnerCrossplane {
		for _, d := range seen.Want.Definitions { // a CRD may exist although nothing activates it any more
			ids[plan.CRD(d.Name)] = false
		}
	}
	var searches []search
	searches, seen.Unreadable = l.cluster.searches(ids, false)
	done := 0
	type result struct {
		found                 []*metav1.PartialObjectMetadata
		forbidden, unreadable error
	}
	results, err := inParallel(ctx, l.cluster.options.Concurrency, searches, func(ctx context.Context, s search) (result, error) {
		found, err := l.cluster.metadataOf(ctx, s)
		l.cluster.tellOf("observe", &done, len(searches), manifest.ID{Group: s.kind.Group, Kind: s.kind.Kind})
		if apierrors.IsForbidden(err) {
			return result{forbidden: err}, nil
		}
		if err != nil && !l.cluster.stops(ctx, err) {
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
			if _, ok := ids[idOf(o)]; ok {
				seen.Objects[sp.ofCommit(idOf(o))] = o
			}
		}
	}
	return errors.Join(forbidden...)
}

// metadataOf reads the objects of a search: a few by name, more with a list, which is limited to a namespace if all are in the same
// one.
func (c *Cluster) metadataOf(ctx context.Context, s search) ([]*metav1.PartialObjectMetadata, error) {
	if len(s.ids) <= few {
		return c.named(ctx, s.kind, s.ids)
	}
	found, err := c.list(ctx, c.surface, s.kind, spaceOf(s.ids), "")
	return found, c.explain(err, "list", resourceName(c.surface, s.kind))
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
func (l *Looker) compare(ctx context.Context, seen *facts.Observed, sp spelling) error {
	l.mu.Lock()
	before := l.compared
	l.mu.Unlock()
	now := make(map[manifest.ID]compared, len(seen.Asked))
	note := func(a facts.Asked, c compared) {
		now[sp.actual(a.ID)] = c
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
		note(a, before[sp.actual(a.ID)].still(seen.Objects[a.ID], a.Digest))
	}
	doubtful := slices.DeleteFunc(seen.Doubtful(false), func(a facts.Asked) bool { return now[sp.actual(a.ID)].done })
	done := 0
	read, err := inParallel(ctx, l.cluster.options.Concurrency, doubtful, func(ctx context.Context, a facts.Asked) (compared, error) {
		c, err := l.cluster.compared(ctx, a, sp.actual(a.ID))
		l.cluster.tellOf("observe", &done, len(doubtful), a.ID)
		return c, err
	})
	if err != nil {
		return err
	}
	for i, a := range doubtful {
		c := read[i]
		c.was = c.was || now[sp.actual(a.ID)].was
		if c.mark == "" { // deleted between the two requests
			delete(seen.Objects, a.ID)
			c.uid = now[sp.actual(a.ID)].uid
		}
		note(a, c)
	}
	l.mu.Lock()
	l.compared = now
	l.mu.Unlock()
	signal(l.news)
	return nil
}

// unknown stands for the mark of an object that could not be read. It differs from every mark, so the object is read again.
const unknown = "unknown"

// compared reads an object in the version that the commit uses, and compares the two.
func (c *Cluster) compared(ctx context.Context, a facts.Asked, id manifest.ID) (compared, error) {
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
	version := versionOf(a.APIVersion)
	_, unserved := c.surface.resource(groupKind(id), version)
	if unserved != nil {
		version = "" // it exists in another version
	}
	gvr, err := c.surface.resource(groupKind(id), version)
	if err != nil {
		return compared{}, err
	}
	live, err := c.objects.Resource(gvr).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return compared{digest: a.Digest}, nil
	}
	if err != nil {
		explained := c.explain(err, "get", resourceName(c.surface, groupKind(id))+" "+id.Name)
		if c.stops(ctx, err) {
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

// Watch reports the wanted objects that changed since their comparison, and again after every change, until ctx is
// done. It calls trouble once for each kind that cannot be watched.
func (l *Looker) Watch(ctx context.Context, tell func(moved map[manifest.ID]string), trouble func(error)) (wait func()) {
	w := l.cluster.watching(trouble)
	w.everything = true
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.news:
				w.setOwned(l.marks())
			}
		}
	})
	group.Go(func() { w.followKinds(ctx) })
	group.Go(func() { w.report(ctx, tell, nil) })
	return group.Wait
}

// marks returns the marks that show whether an object changed.
func (l *Looker) marks() map[manifest.ID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks := make(map[manifest.ID]string, len(l.compared))
	for id, c := range l.compared {
		if marks[id] = c.mark; c.mark == "" {
			marks[id] = absent
		}
	}
	return marks
}
