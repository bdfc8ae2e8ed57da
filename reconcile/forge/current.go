package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/report"
)

// A Current is the one current comment of a key on a pull request. It is updated in place. A worse verdict is a new comment, so that
// people are notified, and the old one points to it.
type Current struct {
	Key      string
	Body     string
	Verdict  report.Word
	Replaces []string // the keys of earlier comments that this one stands for
	Quiet    bool     // there is nothing to notify anyone of: without a comment there is none
}

// A minimizer is a client of a forge that folds a comment away.
type minimizer interface {
	minimize(ctx context.Context, c comment) error
}

// Publish writes the current comment. It decides from the comments alone, so a process that ended between two requests, a second
// process, or a person who deleted a comment leads to no second current one: the newest is current, and older ones are retired.
func (p *Pulls) Publish(ctx context.Context, number int, c Current) error {
	if err := p.publish(ctx, number, c); err != nil {
		return p.transport.redacted(fmt.Errorf("pull request %d: %w", number, err))
	}
	return nil
}

func (p *Pulls) publish(ctx context.Context, number int, c Current) error {
	body, err := p.body(ctx, c.Key, p.verdictMark(c.Verdict)+c.Body)
	if err != nil {
		return err
	}
	all, err := p.comments(ctx, number, time.Time{})
	many := errors.Is(err, errTooManyComments) // then a new comment would not be found again
	if err != nil && !many {
		return err
	}
	current, old := p.marked(all, c.Key), []comment(nil)
	for _, key := range c.Replaces {
		if key != c.Key {
			old = append(old, p.marked(all, key)...)
		}
	}
	if len(current)+len(old) == 0 {
		if c.Quiet {
			return nil
		}
		if many {
			return errTooManyComments
		}
		return p.comment(ctx, number, body)
	}
	self, err := p.self(ctx)
	if err != nil {
		return err
	}
	if self == "" { // the forge does not say whose a comment is: only a change of it shows that
		return p.inPlace(ctx, number, self, current, body)
	}
	foreign := func(is comment) bool { return !strings.EqualFold(is.author, self) }
	current, old = slices.DeleteFunc(current, foreign), slices.DeleteFunc(old, foreign)
	wasOld := len(old)
	var last comment
	switch n := len(current); {
	case n == 0 && wasOld == 0 && c.Quiet:
		return nil
	case n == 0 && many:
		return errTooManyComments
	case n == 0, !many && worse(c.Verdict, p.verdictOf(current[n-1])):
		if err := p.comment(ctx, number, body); err != nil {
			return err
		}
		old = append(old, current...)
		if last, err = p.newest(ctx, number, self, c.Key); err != nil {
			return err
		}
	default:
		last = current[n-1]
		old = append(old, current[:n-1]...)
		if normal(last.body) != normal(body) {
			if err := p.edit(ctx, number, last, body); err != nil {
				return err
			}
		}
	}
	for _, is := range old {
		if err := p.retire(ctx, number, c.Key, is, last); err != nil {
			return err
		}
	}
	return nil
}

// worse reports whether a verdict is worse than another one that is known.
func worse(a, than report.Word) bool {
	order := []report.Word{report.Safe, report.Look, report.Blocked}
	return than != "" && slices.Index(order, a) > slices.Index(order, than)
}

// verdictMark is the invisible line that tells a later process the verdict of a comment.
func (p *Pulls) verdictMark(w report.Word) string {
	if w == "" {
		return ""
	}
	return p.forge.dialect.Mark("headgate/verdict/" + string(w))
}

// verdictOf returns the verdict of a comment, or "" if it is from before there were any.
func (p *Pulls) verdictOf(c comment) report.Word {
	for _, w := range []report.Word{report.Safe, report.Look, report.Blocked} {
		_, below, _ := strings.Cut(normal(c.body), "\n")
		if strings.HasPrefix(strings.TrimSpace(below), strings.TrimSpace(p.verdictMark(w))) {
			return w
		}
	}
	return ""
}

// marked returns the comments that begin with the mark of a key, the oldest first.
func (p *Pulls) marked(all []comment, key string) []comment {
	mark := strings.TrimSpace(p.forge.dialect.Mark(key))
	found := slices.DeleteFunc(slices.Clone(all), func(c comment) bool { return !strings.HasPrefix(strings.TrimSpace(c.body), mark) })
	slices.SortStableFunc(found, func(a, b comment) int { return cmp.Compare(a.id, b.id) })
	return found
}

// newest returns the current comment, after it was written.
func (p *Pulls) newest(ctx context.Context, number int, self, key string) (comment, error) {
	all, err := p.comments(ctx, number, time.Time{})
	if err != nil {
		return comment{}, err
	}
	own := slices.DeleteFunc(p.marked(all, key), func(c comment) bool { return !strings.EqualFold(c.author, self) })
	if len(own) == 0 {
		return comment{}, nil // the forge does not list it yet, or a person deleted it
	}
	return own[len(own)-1], nil
}

// retire ends that a comment is current: the forge folds it away, or it becomes a line that points to the current one. Either way
// its mark changes, so that it is not found again.
func (p *Pulls) retire(ctx context.Context, number int, key string, c, current comment) error {
	mark := p.forge.dialect.Mark(key + "/outdated")
	if by, ok := p.pullAPI.(minimizer); ok {
		err := by.minimize(ctx, c)
		if _, passes := errors.AsType[*Later](err); passes {
			return err
		}
		if err == nil {
			_, below, _ := strings.Cut(normal(c.body), "\n")
			return p.edit(ctx, number, c, mark+below)
		}
	}
	where := "Headgate's newer comment"
	if url := p.commentURL(number, current); url != "" {
		where = "[" + where + "](" + url + ")"
	}
	return p.edit(ctx, number, c, mark+"Outdated: see "+where+".\n")
}

// commentURL returns where a browser finds a comment, or "".
func (p *Pulls) commentURL(number int, c comment) string {
	if c.id == 0 || p.forge.commentPath == "" {
		return ""
	}
	return p.at.page() + fmt.Sprintf(p.forge.commentPath, number, c.id)
}

// body returns what the forge gets for a text.
func (p *Pulls) body(ctx context.Context, key, text string) (string, error) {
	if _, err := p.transport.token(ctx); err != nil { // from now on hide knows it
		return "", err
	}
	body := p.forge.dialect.Mark(key) + p.forge.dialect.Render(p.transport.hide(text))
	if most := p.forge.dialect.MaxBytes; len(body) > most {
		return "", fmt.Errorf("a comment of %d bytes is more than %d", len(body), most)
	}
	return body, nil
}

// inPlace changes the first of some comments that this account wrote, or writes one.
func (p *Pulls) inPlace(ctx context.Context, number int, self string, marked []comment, body string) error {
	for _, c := range marked {
		switch {
		case self != "" && !strings.EqualFold(c.author, self):
		case normal(c.body) == normal(body):
			return nil
		default:
			err := p.edit(ctx, number, c, body)
			if _, foreign := errors.AsType[foreignError](err); self != "" || !foreign {
				return err
			}
		}
	}
	return p.comment(ctx, number, body)
}
