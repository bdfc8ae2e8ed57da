package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/klog/v2"
)

func TestColoured(t *testing.T) {
	cases := map[string]struct {
		reason string
		flag   string
		env    map[string]string
		tty    bool
		want   bool
	}{
		"Terminal":      {"A terminal gets colour.", "auto", nil, true, true},
		"Pipe":          {"A program that reads the output gets no colour.", "auto", nil, false, false},
		"NoColor":       {"NO_COLOR disables colour.", "auto", map[string]string{"NO_COLOR": "1"}, true, false},
		"Dumb":          {"A terminal that does not support colours gets none.", "auto", map[string]string{"TERM": "dumb"}, true, false},
		"Forced":        {"A CI system shows colours although it is no terminal.", "auto", map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		"NotForced":     {"The value 0 does not force colour.", "auto", map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		"FlagOverNone":  {"A flag has priority over the environment.", "always", map[string]string{"NO_COLOR": "1"}, false, true},
		"FlagOverForce": {"A flag that disables colour also has priority over the environment.", "never", map[string]string{"CLICOLOR_FORCE": "1"}, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			term := terminal{colour: choice{value: tc.flag}, getenv: func(name string) string { return tc.env[name] }}
			if got := term.coloured(tc.tty); got != tc.want {
				t.Errorf("%s\ncoloured(%v): want %v, got %v", tc.reason, tc.tty, tc.want, got)
			}
		})
	}
}

func TestMasked(t *testing.T) {
	var b bytes.Buffer
	m := &masked{w: &b}
	m.hide("hunter22")
	if n, err := m.Write([]byte("GET https://me:hunter22@host\n")); err != nil || n != 29 {
		t.Fatalf("Write(...) = %d, %v; a writer returns the length of its input", n, err)
	}
	if got, want := b.String(), "GET https://me:***@host\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	b.Reset()
	m.hide(`p"s&t`)
	if _, err := m.Write([]byte(`{"a":"p\"s\u0026t","b":"hunter22"} p"s&t`)); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), `{"a":"***","b":"***"} ***`; got != want {
		t.Errorf("As JSON has it, and every one: want %q, got %q", want, got)
	}
}

// A library may log a secret in an encoded form that readers can decode.
func TestMaskedInEveryForm(t *testing.T) {
	const secret = "pä<ss>&\"wörd7"
	for form, text := range map[string]string{
		"JSON":     `pä\u003css\u003e\u0026\"wörd7`,
		"%q":       fmt.Sprintf("%q", secret),
		"%+q":      fmt.Sprintf("%+q", secret),
		"base64":   base64.StdEncoding.EncodeToString([]byte(secret)),
		"unpadded": base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"URL":      base64.RawURLEncoding.EncodeToString([]byte(secret)),
	} {
		var b bytes.Buffer
		m := &masked{w: &b}
		m.hide(secret)
		if _, err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Trim(b.String(), `"`); got != "***" {
			t.Errorf("%s: %s is written as %s", form, text, got)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got, want := printable("a\x1b[2Jb\u202ec\nd"), "a[2Jbc\nd"; got != want {
		t.Errorf("A commit cannot move the cursor of who reads its errors.\nwant %q, got %q", want, got)
	}
}

// A log line is one printable line of limited length, even if a server writes megabytes of control characters.
func TestLoggable(t *testing.T) {
	for name, value := range map[string]any{
		"Text": "a\x1b[31m\u009b\u202eb", "Error": errors.New("a\x1b[31m\u009b\u202eb"), "List": []string{"a\x1b[31m\u009b\u202eb"},
		"Long": strings.Repeat("ä", maxLogged),
	} {
		text := fmt.Sprint(loggable(nil, slog.Any("x", value)).Value.Any())
		if strings.ContainsAny(text, "\x1b\u009b\u202e") || len(text) > maxLogged+len("…") || !utf8.ValidString(text) {
			t.Errorf("%s: %.100q", name, text)
		}
	}
}

func TestLibrariesLog(t *testing.T) {
	was, logged := slog.Default(), klog.Background()
	t.Cleanup(func() {
		slog.SetDefault(was)
		klog.SetLogger(logged)
	})
	var b bytes.Buffer
	logTo(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	slog.Debug("ours")
	klog.Background().WithName("envvar").V(1).Info("Feature gate default state", "feature", "InOrderInformers")
	klog.Background().WithValues("a", "b").Error(errors.New("boom"), "a request failed")
	if got := b.String(); !strings.Contains(got, "ours") || !strings.Contains(got, "boom") || strings.Contains(got, "gate") {
		t.Errorf("The log has what Headgate does and what fails, and not the feature gates of libraries: %s", got)
	}
}
