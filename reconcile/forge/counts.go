package forge

import (
	"context"
	"errors"
	"slices"
)

// Counts reports whether a pull request counts for the status of its head if others have the same head: its author wrote
// the commit, or may write to the repository. Everybody else can only open a pull request with it.
func (p *Pulls) Counts(ctx context.Context, pull Pull) (bool, error) {
	if pull.Queued {
		return true, nil // only users who may write add to a merge queue
	}
	api, ok := p.pullAPI.(approvalAPI)
	if !ok {
		return false, errors.New("the authors of pull requests are not known for this forge")
	}
	if _, err := p.transport.token(ctx); err != nil {
		return false, err
	}
	all, err := api.authors(ctx, pull.Number)
	if err != nil {
		return false, p.transport.redacted(err)
	}
	opener := comment{author: all.known[0].name, of: all.known[0].id}
	if slices.ContainsFunc(all.made[pull.Head], func(u user) bool { return u.wrote(opener) }) {
		return true, nil
	}
	writers, ok := p.pullAPI.(writerAPI)
	if !ok { // the forge does not report who may write, but the branches of the repository are of such users
		return !pull.Fork, nil
	}
	may, err := writers.mayWrite(ctx, opener)
	if err != nil {
		return false, p.transport.redacted(err)
	}
	return may, nil
}
