package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/go-logr/logr"
	"github.com/lmittmann/tint"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A terminal is where the program talks: data to out, everything else to err.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	progress *progress
	masked   *masked // below err
	getenv   func(string) string

	colour  choice
	verbose int
	began   bool // the command line was understood
	errTTY  bool
	atEnd   []func() error // what to close when the program ends
}

func newTerminal(stdout, stderr *os.File, getenv func(string) string) *terminal {
	safe := &masked{w: stderr}
	safe.hide(getenv("HEADGATE_GIT_PASSWORD"))
	p := &progress{w: safe, width: func() int {
		width, _, err := term.GetSize(int(stderr.Fd()))
		if err != nil {
			return 80
		}
		return width
	}}
	errTTY := term.IsTerminal(int(stderr.Fd()))
	p.off = !errTTY || getenv("CI") != "" || getenv("TERM") == "dumb"
	return &terminal{in: os.Stdin, out: stdout, err: p, progress: p, masked: safe, getenv: getenv, colour: oneOf("auto", "always", "never"), errTTY: errTTY}
}

func (t *terminal) addFlags(flags *pflag.FlagSet) {
	flags.Var(&t.colour, "color", "colour in text: auto, always, never")
	flags.CountVarP(&t.verbose, "verbose", "v", "log to standard error; -vv logs every request")
}

// begin is called once the command line is understood.
func (t *terminal) begin() {
	t.began = true
	handler := slog.DiscardHandler
	if t.verbose > 0 {
		level := slog.LevelInfo
		if t.verbose > 1 {
			level = slog.LevelDebug
		}
		handler = tint.NewTextHandler(t.err, &tint.Options{Level: level, NoColor: !t.coloured(t.errTTY)})
	}
	logTo(handler)
}

// logTo is where everything that logs does.
func logTo(handler slog.Handler) {
	// client-go and controller-runtime would write past us otherwise.
	logger := slog.New(handler)
	slog.SetDefault(logger)
	klog.LogToStderr(false)
	klog.SetSlogLogger(logger)
	log.SetLogger(logr.FromSlogHandler(handler))
}

// coloured reports whether to write colours to a file that is a terminal, or is not.
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

// paint is for standard error.
func (t *terminal) paint(s, colour string) string {
	if !t.coloured(t.errTTY) {
		return s
	}
	return colour + s + plain
}

// printable takes out of an error what a commit could do to a terminal with it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, s)
}

// masked is the last resort against a password that some library writes out.
type masked struct {
	w io.Writer

	mu      sync.Mutex
	secrets []string
}

// hide masks a value in everything that is written from now on, also as JSON, %q, %+q and base64 write it.
func (m *masked) hide(secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, form := range formsOf(secret) {
		if form != "" && !slices.Contains(m.secrets, form) {
			m.secrets = append(m.secrets, form)
		}
	}
	slices.SortStableFunc(m.secrets, func(a, b string) int { return len(b) - len(a) }) // a form may contain another one
}

// formsOf returns a secret in the forms that programs write it in.
func formsOf(secret string) []string {
	unquoted := func(s string) string { return s[1 : len(s)-1] }
	forms := []string{secret, unquoted(strconv.Quote(secret)), unquoted(strconv.QuoteToASCII(secret))}
	if quoted, err := json.Marshal(secret); err == nil { // with \u003c
		forms = append(forms, unquoted(string(quoted)))
	}
	var plain bytes.Buffer
	unescaped := json.NewEncoder(&plain)
	unescaped.SetEscapeHTML(false)
	if unescaped.Encode(secret) == nil { //nolint:errchkjson // a string always encodes
		forms = append(forms, unquoted(strings.TrimSpace(plain.String())))
	}
	if len(secret) >= 6 { // the base64 of less may be part of any text
		forms = append(forms,
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret)),
			base64.URLEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
	return forms
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
