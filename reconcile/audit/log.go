package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile/report"
)

// A Log writes entries. The methods of nil write nothing. It is safe for concurrent use.
type Log struct {
	to io.Writer

	mu    sync.Mutex
	known map[string]map[string]bool // by Sync: the entries of NoteOnce
}

// To returns a log that writes each entry with one call of w.
func To(w io.Writer) *Log { return &Log{to: w} }

// The limits of what is remembered. Beyond them, an entry may be written again.
const (
	mostKnown = 1000  // entries of a Sync
	mostSyncs = 10000 // including those that are gone
)

// Write writes entries, with the time.
func (l *Log) Write(all ...Entry) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range all {
		e.APIVersion, e.Kind, e.Time = report.APIVersion, "Audit", time.Now().UTC()
		line, err := e.line()
		if err != nil {
			return err
		}
		if _, err := l.to.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("nothing is written to the cluster, because the audit log cannot be written: %w", err)
		}
	}
	return nil
}

// Note writes entries about what people decided. In contrast to Write, nobody waits for them: an error only goes to the log of the process.
func (l *Log) Note(all ...Entry) {
	for _, e := range all {
		if err := l.Write(e); err != nil {
			slog.Error("the audit log cannot be written", "sync", e.Sync, "event", e.Event, "error", err)
		}
	}
}

// NoteOnce is Note for entries that are found again and again. It writes each of them once, whatever the commit.
func (l *Log) NoteOnce(all ...Entry) {
	for _, e := range all {
		if l.isNew(e) {
			l.Note(e)
		}
	}
}

func (l *Log) isNew(e Entry) bool {
	if l == nil {
		return false
	}
	e.Commit = ""
	key := fmt.Sprintf("%q", []string{string(e.Event), e.By, e.Digest, e.At, e.Reason})
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= mostSyncs || l.known == nil {
		l.known = map[string]map[string]bool{}
	}
	of := l.known[e.Sync]
	if len(of) >= mostKnown || of == nil {
		of = map[string]bool{}
		l.known[e.Sync] = of
	}
	defer func() { of[key] = true }()
	return !of[key]
}

// The limits of a line, so that no commit, comment or annotation makes it large.
const (
	mostText = 1000 // bytes of a text
	mostList = 20   // entries of a list
)

// line returns the entry as one line of JSON. People write some of its texts: they are cut, and all that could move, hide or break text on
// a terminal is escaped.
func (e Entry) line() ([]byte, error) {
	for _, text := range []*string{&e.Sync, &e.Commit, &e.By, &e.Digest, &e.At, &e.Reason, &e.Object, &e.Shown} {
		*text = cut(*text)
	}
	e.Guards, e.From = few(e.Guards, nil), few(e.From, cut)
	e.Approvals = few(e.Approvals, func(a report.Approved) report.Approved {
		a.Commit, a.By, a.ID, a.Digests = cut(a.Commit), cut(a.By), cut(a.ID), few(a.Digests, cut)
		return a
	})
	e.Settings = few(e.Settings, func(s Setting) Setting { return Setting{cut(s.Field), cut(s.Was), cut(s.Is)} })
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, err
	}
	return escaped(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escaped returns JSON without spaces between its values, in which each character that is not visible is escaped.
func escaped(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			first, second := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// cut returns the beginning of a text.
func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	end := mostText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// few returns the first elements of a list, each as a function returns it.
func few[T any](all []T, each func(T) T) []T {
	all = slices.Clone(all[:min(len(all), mostList)])
	for i := range all {
		if each != nil {
			all[i] = each(all[i])
		}
	}
	return all
}
