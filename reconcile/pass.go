package reconcile

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
)

// A memo remembers what the last commit rendered to, for passes that find it unchanged.
// Its zero value remembers nothing.
type memo struct {
	revision string // "" is nothing; a directory has none, and is rendered every time
	known    known
	want     render.Desired
	err      error // of a commit that cannot be rendered
}

// render renders a commit, unless that was just done.
func (m *memo) render(ctx context.Context, r Reconciler, in render.Input) (render.Desired, error) {
	now, err := r.ask(ctx)
	if err != nil {
		return render.Desired{Revision: in.Revision}, err
	}
	if in.Revision != "" && in.Revision == m.revision && m.is(now) {
		return m.want, m.err
	}
	*m = memo{} // the old one may go before the new one is made
	r.Source = fetched(in)
	if r.Place != nil {
		r.Place = now
	}
	if r.CA != nil {
		r.CA = func(context.Context) ([]byte, error) { return now.ca, nil }
	}
	want, err := r.Render(ctx, "")
	var wrong catalogue.Errors
	if err == nil || errors.As(err, &wrong) { // else it may go well the next time
		*m = memo{revision: in.Revision, known: now, want: want.Light(), err: err}
	}
	return want, err
}

// is says whether the place looks as it did. What it recorded after the commit was rendered
// for it is no news.
func (m *memo) is(now known) bool {
	return (now.owner == m.known.owner || now.owner == m.want.Owner) && bytes.Equal(now.ca, m.known.ca) &&
		slices.EqualFunc(now.definitions, m.known.definitions, func(a, b *catalogue.Definition) bool { return a.Name == b.Name })
}

// known is what a Place said, and a Place that says it again; and what else was asked.
type known struct {
	owner       render.Owner
	definitions []*catalogue.Definition
	ca          []byte // of conversion webhooks
}

// ask asks the place whatever rendering needs to know of it.
func (r Reconciler) ask(ctx context.Context) (k known, err error) {
	if r.CA != nil {
		if k.ca, err = r.CA(ctx); err != nil {
			return k, err
		}
	}
	if r.Place == nil {
		return k, nil
	}
	if r.Options.Owner == render.OwnerAuto {
		if k.owner, err = r.Place.Owner(ctx); err != nil {
			return k, err
		}
	}
	if r.Live {
		k.definitions, err = r.Place.Definitions(ctx)
	}
	return k, err
}

// Owner is what the place said.
func (k known) Owner(context.Context) (render.Owner, error) { return k.owner, nil }

// Definitions are what the place said.
func (k known) Definitions(context.Context) ([]*catalogue.Definition, error) {
	return k.definitions, nil
}

// fetched is a Source of one commit that is here already.
type fetched render.Input

// Fetch is the commit.
func (f fetched) Fetch(context.Context, string) (render.Input, error) { return render.Input(f), nil }
