package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/report"
)

// A Pull is a pull request.
type Pull struct {
	Number int
	Head   string // the newest commit of its branch, full hex
	Target string // the branch to merge it into
	Fork   bool   // its branch is in another repository, or the forge does not say in which
	Merge  string // the ref of the commit that merges it into its target; "" if the forge makes none

	Updated time.Time // when it changed, or was commented on, last; zero if the forge does not say
}

// A comment on a pull request.
type comment struct {
	id     int64
	author string
	body   string

	created, updated time.Time
	of               int64    // the id of the author, if the forge needs it
	names            []string // other names of the author, which nobody else can take
	shown            string   // how people call the author, if that is not the name
	bot              bool     // the author is a program

	thread  int64 // that it starts, if the forge has threads
	version int   // if the forge counts edits

	node string // its id for requests of another kind, if the forge has such
}

// A pullAPI reads the pull requests of a repository and their comments, and comments on them.
type pullAPI interface {
	pull(ctx context.Context, number int) (Pull, error)
	// open returns the open pull requests. A head may be only its first digits.
	open(ctx context.Context) ([]Pull, error)
	// self returns the user of the token; "" if the forge does not say, and lets only authors edit.
	self(ctx context.Context) (string, error)
	// comments returns the comments, where the forge can only those that were written or changed since a time. With
	// errTooManyComments, it returns the oldest.
	comments(ctx context.Context, number int, since time.Time) ([]comment, error)
	comment(ctx context.Context, number int, body string) error
	// edit fails with a foreignError for a comment that another user may have written.
	edit(ctx context.Context, number int, c comment, body string) error
	remove(ctx context.Context, number int, c comment) error
}

var errTooManyComments = errors.New("the pull request has more comments than Headgate reads; approve in .headgate/approvals.yaml")

// A foreignError means that the forge lets only the author edit a comment.
type foreignError struct{ error }

// Pulls are the pull requests of a repository.
type Pulls struct {
	pullAPI
	transport *transport
	forge     Forge
	at        Repository

	listed map[int]Pull // by the last Open
}

// room returns the maximum size in bytes of the comment of a key.
func (p *Pulls) room(key string) int {
	return p.forge.dialect.MaxBytes - len(p.forge.dialect.Mark(key)) - len(p.verdictMark(report.Blocked))
}

// Pull reads a pull request.
func (p *Pulls) Pull(ctx context.Context, number int) (Pull, error) {
	pull, err := p.pull(ctx, number)
	if err != nil {
		return Pull{}, p.transport.redacted(err)
	}
	if !isCommit(pull.Head) {
		return Pull{}, fmt.Errorf("pull request %d: its head is %q, and no commit", number, plain(pull.Head))
	}
	pull.Merge = p.forge.mergeOf(number)
	return pull, nil
}

// Open returns the open pull requests, newest first. It leaves out one without a head, whose branch is
// gone. It is not safe for concurrent use.
func (p *Pulls) Open(ctx context.Context) ([]Pull, error) {
	all, err := p.open(ctx)
	if err != nil {
		return nil, p.transport.redacted(err)
	}
	listed := make(map[int]Pull, len(all))
	for _, pull := range all {
		if known := p.listed[pull.Number]; pull.Head != "" && strings.HasPrefix(known.Head, pull.Head) {
			pull.Head = known.Head
		} else if pull.Head != "" && !isCommit(pull.Head) {
			whole, err := p.pull(ctx, pull.Number)
			if err != nil {
				return nil, p.transport.redacted(err)
			}
			pull.Head = whole.Head
		}
		if pull.Number > 0 && isCommit(pull.Head) {
			pull.Merge = p.forge.mergeOf(pull.Number)
			listed[pull.Number] = pull
		}
	}
	p.listed = listed
	return slices.SortedFunc(maps.Values(listed), func(a, b Pull) int { return cmp.Compare(b.Number, a.Number) }), nil
}

// mergeOf returns the ref of the commit that merges a pull request into its target, or "" if the
// forge makes none.
func (f Forge) mergeOf(number int) string {
	if f.mergeRef == "" {
		return ""
	}
	return fmt.Sprintf(f.mergeRef, number)
}

// Comment writes the one comment of a key on a pull request, or changes it. It finds the comment by an
// invisible mark and by its author. Any user can copy the mark; with the mark alone, Headgate would
// overwrite comments of other users, or they could hide Headgate's.
func (p *Pulls) Comment(ctx context.Context, number int, key, body string) error {
	if err := p.write(ctx, number, key, body); err != nil {
		return p.transport.redacted(fmt.Errorf("pull request %d: %w", number, err))
	}
	return nil
}

// once writes the one comment of a key that several processes may write at the same time: each cluster answers the commands on a
// pull request. The first comment of the account stays.
func (p *Pulls) once(ctx context.Context, number int, self, key, body string) error {
	if err := p.Comment(ctx, number, key, body); err != nil || self == "" {
		return err
	}
	all, err := p.comments(ctx, number, time.Time{})
	if err != nil {
		return p.transport.redacted(err)
	}
	mark := strings.TrimSpace(p.forge.dialect.Mark(key))
	all = slices.DeleteFunc(all, func(c comment) bool {
		return !strings.EqualFold(c.author, self) || !strings.HasPrefix(strings.TrimSpace(c.body), mark)
	})
	slices.SortFunc(all, func(a, b comment) int { return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.id, b.id)) })
	for _, c := range all[min(1, len(all)):] {
		_ = p.remove(ctx, number, c) // another process may have removed it, and a second answer does no harm
	}
	return nil
}

func (p *Pulls) write(ctx context.Context, number int, key, body string) error {
	body, err := p.body(ctx, key, body)
	if err != nil {
		return err
	}
	all, err := p.comments(ctx, number, time.Time{})
	if err != nil && !errors.Is(err, errTooManyComments) {
		return err
	}
	marked := p.marked(all, key)
	if len(marked) == 0 {
		return p.comment(ctx, number, body)
	}
	self, err := p.self(ctx)
	if err != nil {
		return err
	}
	return p.inPlace(ctx, number, self, marked, body)
}

// normal returns a body as every forge returns it: some change line breaks.
func normal(body string) string {
	return strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n"))
}

// pullsOf returns pull requests from a forge's own form of them.
func pullsOf[T any](all []T, pull func(T) Pull) []Pull {
	var pulls []Pull
	for _, is := range all {
		pulls = append(pulls, pull(is))
	}
	return pulls
}
