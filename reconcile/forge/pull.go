package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/report"
)

// A Pull is a pull request.
type Pull struct {
	Number int
	Head   string // the newest commit of its branch, as a full hash
	Target string // the branch to merge it into
	Fork   bool   // its branch is in another repository, or the forge does not report in which
	Merge  string // the ref of the merge commit that the forge makes for it; "" if the forge makes none
	Queued bool   // Head is the commit of a merge queue for it
	Author string // the ID of the user who opened it; "" if the forge does not report it

	Updated time.Time // when it last changed or got a comment; zero if the forge does not report it
}

// authorOf returns the ID of an author as text; "" for 0, which means that the forge reports none.
func authorOf(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// A comment is a comment on a pull request.
type comment struct {
	id     int64
	author string
	body   string

	created, updated time.Time
	of               int64    // the ID of the author; 0 if the forge reports none, or only names that no other user can take
	names            []string // other names of the author that no other user can take
	shown            string   // the display name of the author, if it differs from the name
	bot              bool     // the author is a program

	thread  int64 // the thread that it starts, if the forge has threads
	version int   // the number of edits, if the forge counts them

	node string // its ID in another API of the forge, if that has one
}

// A pullAPI reads the pull requests of a repository and their comments, and comments on them.
type pullAPI interface {
	pull(ctx context.Context, number int) (Pull, error)
	// open returns the open pull requests. Their heads may be shortened.
	open(ctx context.Context) ([]Pull, error)
	// self returns the user of the token. It returns "" if the forge does not report it and lets only authors edit comments.
	self(ctx context.Context) (string, error)
	// comments returns the comments. If the forge can filter, they are only those written or changed since a time.
	// With errTooManyComments, it returns the oldest.
	comments(ctx context.Context, number int, since time.Time) ([]comment, error)
	comment(ctx context.Context, number int, body string) error
	// edit returns a foreignError if another user may have written the comment.
	edit(ctx context.Context, number int, c comment, body string) error
	remove(ctx context.Context, number int, c comment) error
}

var errTooManyComments = errors.New("the pull request has more comments than Headgate reads; approve in .headgate/approvals.yaml")

// A foreignError means that the forge only lets the author edit a comment.
type foreignError struct{ error }

// Pulls gives access to the pull requests of a repository.
type Pulls struct {
	pullAPI
	transport *transport
	forge     Forge
	at        Repository

	listed map[int]Pull     // the result of the last Open
	named  map[string]int64 // the IDs of the users of names in lists of approvers
}

// room returns the maximum size in bytes of the comment for a key.
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
		return Pull{}, fmt.Errorf("pull request %d: its head %q is not a commit", number, plain(pull.Head))
	}
	pull.Merge = p.forge.mergeOf(number)
	return pull, nil
}

// Open returns the open pull requests, newest first. It leaves out pull requests whose branch was deleted. It is not
// safe for concurrent use.
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

// A queueAPI lists the commits of a merge queue.
type queueAPI interface {
	queued(ctx context.Context) ([]Pull, error)
}

// Queued returns the commits of the merge queue, each with the number of its pull request. It returns none if the forge has
// no queue, or does not show it to the token.
func (p *Pulls) Queued(ctx context.Context) ([]Pull, error) {
	api, ok := p.pullAPI.(queueAPI)
	if !ok {
		return nil, nil
	}
	all, err := api.queued(ctx)
	if _, refused := errors.AsType[*Refusal](err); refused {
		return nil, nil
	}
	if err != nil {
		return nil, p.transport.redacted(err)
	}
	return slices.DeleteFunc(all, func(q Pull) bool { return q.Number == 0 || !isCommit(q.Head) }), nil
}

// mergeOf returns the ref of the commit that merges a pull request into its target, or "" if the
// forge makes none.
func (f Forge) mergeOf(number int) string {
	if f.mergeRef == "" {
		return ""
	}
	return fmt.Sprintf(f.mergeRef, number)
}

// Comment writes the only comment for a key on a pull request, or edits it. It finds the comment by an invisible mark
// and by its author. Any user can copy the mark, so with the mark alone, Headgate would overwrite comments of other
// users, and they could hide Headgate's.
func (p *Pulls) Comment(ctx context.Context, number int, key, body string) error {
	if err := p.write(ctx, number, key, body); err != nil {
		return p.transport.redacted(fmt.Errorf("pull request %d: %w", number, err))
	}
	return nil
}

// once writes the only comment for a key that several processes may write at the same time: each cluster answers the
// commands on a pull request. The first comment of the account stays.
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
		_ = p.remove(ctx, number, c) // another process may have removed it, and a second answer is harmless
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

// normal returns a body in the same form for all forges: some change line breaks.
func normal(body string) string {
	return strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n"))
}

// pullsOf converts a forge's own form of pull requests.
func pullsOf[T any](all []T, pull func(T) Pull) []Pull {
	var pulls []Pull
	for _, is := range all {
		pulls = append(pulls, pull(is))
	}
	return pulls
}
