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

// A Current is the current comment for a key on a pull request. Publish edits it in place. A worse verdict becomes a
// new comment, so that the forge notifies people, and the old comment links to it.
type Current struct {
	Key      string
	Body     string
	Verdict  report.Word
	Replaces []string // the keys of earlier comments that this one replaces
	Quiet    bool     // nothing to notify people about: edit a comment if there is one, but create none
}

// A minimizer is a client of a forge that can fold a comment away.
type minimizer interface {
	minimize(ctx context.Context, c comment) error
}

// Publish writes the current comment. It decides only from the existing comments. An interrupted process, a second
// process or a deleted comment therefore never causes a second current comment: the newest one is current, and
// Publish retires older ones.
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
	many := errors.Is(err, errTooManyComments) // a new comment would not be found again
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
	if self == "" { // The forge does not report the author of a comment: only an attempt to edit it shows that.
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

// worse reports whether a verdict is worse than another one. Nothing is worse than an unknown verdict.
func worse(a, than report.Word) bool {
	order := []report.Word{report.Safe, report.Look, report.Blocked}
	return than != "" && slices.Index(order, a) > slices.Index(order, than)
}

// verdictMark returns the invisible line that stores the verdict of a comment.
func (p *Pulls) verdictMark(w report.Word) string {
	if w == "" {
		return ""
	}
	return p.forge.dialect.Mark("headgate/verdict/" + string(w))
}

// verdictOf returns the verdict of a comment, or "" for a comment of an old release without a verdict mark.
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

// newest returns the newest comment with a key, after a new one was written.
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

// retire makes a comment outdated: the forge folds it away, or its text becomes a link to the current comment. Either
// way its mark changes, so that Headgate does not find it again.
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

// commentURL returns the URL of a comment's web page, or "".
func (p *Pulls) commentURL(number int, c comment) string {
	if c.id == 0 || p.forge.commentPath == "" {
		return ""
	}
	return p.at.page() + fmt.Sprintf(p.forge.commentPath, number, c.id)
}

// body returns the text of a comment in the form that the forge accepts.
func (p *Pulls) body(ctx context.Context, key, text string) (string, error) {
	if _, err := p.transport.token(ctx); err != nil { // hide needs the current token
		return "", err
	}
	body := p.forge.dialect.Mark(key) + p.forge.dialect.Render(p.transport.hide(text))
	if most := p.forge.dialect.MaxBytes; len(body) > most {
		return "", fmt.Errorf("a comment of %d bytes is more than %d", len(body), most)
	}
	return body, nil
}

// inPlace edits the first of the given comments that this account wrote, or writes a new one.
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
