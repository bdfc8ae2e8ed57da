package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"strings"
	"sync"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/legible"

	"github.com/go-logr/logr"
	"github.com/lmittmann/tint"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A terminal holds the input and output of the program: data goes to out, everything else to err.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	progress *progress
	masked   *masked // below err
	getenv   func(string) string

	colour  choice
	verbose int
	began   bool // set once the command line was parsed
	errTTY  bool
	atEnd   []func() error // called when the program ends
}

func newTerminal(stdout, stderr *os.File, getenv func(string) string) *terminal {
	safe := &masked{w: stderr}
	safe.hide(getenv(v1alpha1.DefaultPasswordEnv))
	safe.hide(getenv(v1alpha1.DefaultIdentityEnv))
	p := &progress{w: safe, width: func() int {
		width, _, err := term.GetSize(int(stderr.Fd()))
		if err != nil {
			return 80
		}
		return width
	}}
	errTTY := term.IsTerminal(int(stderr.Fd()))
	p.lines = !errTTY || getenv("CI") != "" || getenv("TERM") == "dumb"
	return &terminal{in: os.Stdin, out: stdout, err: p, progress: p, masked: safe, getenv: getenv, colour: oneOf("auto", "always", "never"), errTTY: errTTY}
}

func (t *terminal) addFlags(flags *pflag.FlagSet) {
	flags.Var(&t.colour, "color", "colour in text: auto, always, never")
	flags.VarP(level{number{&t.verbose, v1alpha1.Range{Most: 10}}}, "verbose", "v", "log to standard error; -vv logs every request")
	flags.Lookup("verbose").NoOptDefVal = oneMore
}

// begin starts logging, once the command line was parsed.
func (t *terminal) begin() {
	t.began = true
	handler := slog.DiscardHandler
	if t.verbose > 0 {
		level := slog.LevelInfo
		if t.verbose > 1 {
			level = slog.LevelDebug
		}
		handler = tint.NewTextHandler(t.err, &tint.Options{Level: level, NoColor: !t.coloured(t.errTTY), ReplaceAttr: loggable})
	}
	logTo(handler)
}

// warn prints a warning and lets the command go on.
func (t *terminal) warn(format string, args ...any) {
	fmt.Fprintf(t.err, "warning: "+format+"\n", args...)
}

// logTo makes everything that logs use handler.
func logTo(handler slog.Handler) {
	// client-go and controller-runtime would otherwise write to standard error directly.
	logger := slog.New(handler)
	slog.SetDefault(logger)
	stdlog.SetOutput(io.Discard) // net/http quotes unsolicited data from servers here
	klog.LogToStderr(false)
	klog.SetSlogLogger(slog.New(ofLibraries{handler}))
	log.SetLogger(logr.FromSlogHandler(ofLibraries{handler}))
}

// ofLibraries logs what libraries report to users. What they report to their developers, such as each of their feature gates, is below
// slog.LevelInfo.
type ofLibraries struct{ slog.Handler }

func (h ofLibraries) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && h.Handler.Enabled(ctx, level)
}

func (h ofLibraries) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ofLibraries{h.Handler.WithAttrs(attrs)}
}

func (h ofLibraries) WithGroup(name string) slog.Handler {
	return ofLibraries{h.Handler.WithGroup(name)}
}

// coloured reports whether to use colours in a file. tty reports whether the file is a terminal.
func (t *terminal) coloured(tty bool) bool {
	switch {
	case t.colour.value == "always":
		return true
	case t.colour.value == "never", t.getenv("NO_COLOR") != "":
		return false
	case t.getenv("CLICOLOR_FORCE") != "" && t.getenv("CLICOLOR_FORCE") != "0":
		return true
	}
	return tty && t.getenv("TERM") != "dumb"
}

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// paint colours text for standard error.
func (t *terminal) paint(s, colour string) string {
	if !t.coloured(t.errTTY) {
		return s
	}
	return colour + s + plain
}

// printable removes the characters with which a commit or a server could manipulate a terminal or a page: control characters, and
// invisible ones such as bidirectional marks.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && legible.Invisible(r) {
			return -1
		}
		return r
	}, s)
}

// maxLogged is the maximum size of a text in a log. A server may write megabytes into a message.
const maxLogged = 8 << 10

// loggable makes the text of a log attribute printable and limits its length.
func loggable(_ []string, a slog.Attr) slog.Attr {
	text := func(s string) string { return legible.Cut(printable(s), maxLogged) }
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(text(v))
	case error:
		a.Value = slog.StringValue(text(v.Error()))
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = text(s)
		}
		a.Value = slog.AnyValue(all)
	}
	return a
}

// masked replaces secrets in its output. It is the last resort against a password that some library prints.
type masked struct {
	w io.Writer

	mu      sync.Mutex
	secrets []string
}

// hide masks a value in all later output, also in its JSON, %q, %+q and base64 forms.
func (m *masked) hide(secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.secrets = append(m.secrets, diff.Spellings(secret)...)
	m.secrets = diff.LongestFirst(m.secrets) // a form may contain another form
}

func (m *masked) Write(p []byte) (int, error) {
	safe := p
	m.mu.Lock()
	for _, secret := range m.secrets {
		safe = bytes.ReplaceAll(safe, []byte(secret), []byte("***"))
	}
	m.mu.Unlock()
	if _, err := m.w.Write(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}
