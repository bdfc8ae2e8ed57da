package target

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
)

// A checkedCommit is the newest commit of a Sync, and what reading it returned.
type checkedCommit struct {
	revision string
	input    render.Input // with its packages
	fetched  bool         // the input was read, or could not be read
	inputErr error
	want     render.Desired
	rendered bool
	wantErr  error
}

// reader returns the target that reads the commits of the Sync. Statuses, webhooks and previews are left out, because a missing token
// must not prevent other checks; an App also reads the repository.
func (i *inspection) reader() (*Target, error) {
	if i.target != nil {
		return i.target, nil
	}
	s := *i.sync
	if s.Spec.Statuses != nil && s.Spec.Statuses.App == nil {
		s.Spec.Statuses = nil
	}
	s.Spec.Source.Webhook, s.Spec.Previews, s.Spec.Suspend = nil, false, false
	around := i.Around
	if around.Offline = i.Offline; !i.Offline && !i.down[preflight.Cluster] {
		around.Cluster = i.config
	}
	var err error
	i.target, err = New(s, around)
	return i.target, err
}

// repository reads the commit that the Sync follows. It checks the credentials, the ref, the path and the signatures.
func (i *inspection) repository(ctx context.Context) (preflight.Result, error) {
	from := i.sync.Spec.Source
	if i.Offline && isRemote(from.Repo) {
		i.down[preflight.Commit] = true
		return preflight.Leave("--offline: it reads the %s", preflight.Commit), nil
	}
	t, err := i.reader()
	if err != nil {
		return preflight.Result{}, err
	}
	in, err := t.repository.Fetch(ctx, from.Ref)
	if err != nil {
		return preflight.Result{}, err
	}
	if _, err := render.Read(in, t.Loop.Reconciler.Options); err != nil {
		return preflight.Result{}, err
	}
	i.commit.revision = in.Revision
	return preflight.CommitRead(in.Revision), nil
}

// isRemote reports whether a repository is read over the network.
func isRemote(repo string) bool {
	u, err := url.Parse(repo)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "ssh")
}

// input returns the commit with the packages that it names, read once.
func (i *inspection) input(ctx context.Context) (render.Input, error) {
	if !i.commit.fetched {
		i.commit.fetched = true
		i.commit.input, i.commit.inputErr = func() (render.Input, error) {
			t, err := i.reader()
			if err != nil {
				return render.Input{}, err
			}
			return t.Loop.Reconciler.Source.Fetch(ctx, i.sync.Spec.Source.Ref)
		}()
	}
	return i.commit.input, i.commit.inputErr
}

// wanted returns what the commit wants, rendered once.
func (i *inspection) wanted(ctx context.Context) (render.Desired, error) {
	if i.down[preflight.Commit] {
		return render.Desired{}, errors.New("the repository cannot be read")
	}
	if _, err := i.input(ctx); err != nil {
		return render.Desired{}, err
	}
	if !i.commit.rendered {
		i.commit.rendered = true
		i.commit.want, i.commit.wantErr = i.target.Loop.Reconciler.Render(ctx, i.sync.Spec.Source.Ref)
	}
	return i.commit.want, i.commit.wantErr
}

// registries judges whether the packages of the commit can be read.
func (i *inspection) registries(ctx context.Context) (preflight.Result, error) {
	in, err := i.input(ctx)
	if err != nil {
		return preflight.Result{}, err
	}
	var all []preflight.Pulled
	for _, image := range in.Packages {
		p := preflight.Pulled{Image: crossplane.Image(image.Request.Source, image.Version), Host: registry.HostOf(image.Request.Source)}
		if image.Err != nil {
			p.Err = image.Err.Error()
		}
		all = append(all, p)
	}
	return preflight.Packages(all), nil
}

// owners makes the plan that diff makes, and reads which objects it holds because they have another owner.
func (i *inspection) owners(ctx context.Context) (preflight.Result, error) {
	if i.observes() {
		return preflight.Leave("a Sync that only observes leaves every object to its owner"), nil
	}
	want, err := i.wanted(ctx)
	if err != nil {
		return preflight.Result{}, err
	}
	r := i.target.Loop.Reconciler
	r.OnForge, r.Recorder, r.Applier = nil, nil, nil // it only plans
	p, err := r.Plan(ctx, want, r.Observer)
	if err != nil {
		return preflight.Result{}, err
	}
	var held preflight.Holds
	for _, s := range report.New(p.Select(func(s plan.Step) bool { return s.IsHeldBy(guard.NotOurs) }), nil, false).Steps {
		held = append(held, s.ID.Brief()+": "+s.Reason)
	}
	return held.Judge(len(want.Objects)), nil
}

// token judges the token that posts statuses.
func (i *inspection) token(ctx context.Context) (preflight.Result, error) {
	if i.sync.Spec.Statuses == nil {
		return preflight.Leave("%s", errNoStatuses), nil
	}
	of, err := i.account()
	if err != nil {
		return preflight.Result{}, err
	}
	i.forge.token, err = of.Token(ctx)
	if errors.Is(err, forge.ErrNotInspected) {
		return preflight.NotRead(err), nil
	}
	return i.forge.token.Judge(), err
}

func (i *inspection) tokenExpiry(context.Context) (preflight.Result, error) {
	if i.sync.Spec.Statuses == nil {
		return preflight.Leave("%s", errNoStatuses), nil
	}
	if i.forge.token.Forge == "" {
		return preflight.NotRead(errors.New("the forge was not asked")), nil
	}
	return i.forge.token.Expiry.Judge(), nil
}

func (i *inspection) forgeClock(context.Context) (preflight.Result, error) {
	if i.sync.Spec.Statuses == nil {
		return preflight.Leave("%s", errNoStatuses), nil
	}
	return i.forge.clock.judge("the forge"), nil
}

// protection judges whether the branch requires the status that the Sync posts.
func (i *inspection) protection(ctx context.Context) (preflight.Result, error) {
	if i.sync.Spec.Statuses == nil {
		return preflight.Leave("%s", errNoStatuses), nil
	}
	name, is := branch(i.sync.Spec.Source.Ref)
	if !is {
		return preflight.Leave("the Sync follows no branch"), nil
	}
	of, err := i.account()
	if err != nil {
		return preflight.Result{}, err
	}
	found, err := of.Protection(ctx, name)
	if err != nil {
		return preflight.Result{}, err
	}
	if i.sync.Spec.Previews {
		found.Posts = forge.ContextOf(new(PullRequests).nameOf(*i.sync))
	}
	activation, drift := i.contexts()
	found.Later = []string{activation, drift}
	return found.Judge(), nil
}

// contexts returns the contexts of the statuses of passes.
func (i *inspection) contexts() (activation, drift string) {
	of := inventory.Sync{Namespace: i.sync.Namespace, Name: i.sync.Name}
	if i.sync.Spec.Statuses.Contexts == v1alpha1.ContextsCluster {
		of = inventory.Sync{}
	}
	return forge.Statuses{Cluster: i.sync.Spec.ClusterName, Home: v1alpha1.DefaultNamespace}.Contexts(of)
}

// clusterName judges whether another cluster posts the statuses of this one on the newest commit.
func (i *inspection) clusterName(ctx context.Context) (preflight.Result, error) {
	if i.sync.Spec.Statuses == nil {
		return preflight.Leave("%s", errNoStatuses), nil
	}
	of, err := i.account()
	if err != nil {
		return preflight.Result{}, err
	}
	activation, _ := i.contexts()
	found := preflight.Posted{Context: activation, Looks: i.observes(), Commit: i.commit.revision}
	if found.By, err = of.PostedBy(ctx, i.commit.revision, activation); err != nil || found.Looks {
		return found.Judge(), err
	}
	if found.Applied, err = i.applied(ctx); err != nil {
		return preflight.Result{}, fmt.Errorf("whether this cluster posted %s: %w", activation, err)
	}
	return found.Judge(), nil
}

// applied reports whether the cluster has an inventory of the Sync.
func (i *inspection) applied(ctx context.Context) (bool, error) {
	c, err := i.cluster()
	if err != nil {
		return false, err
	}
	inv, err := c.Inventory(ctx)
	return inv.ResourceVersion != "", err
}
