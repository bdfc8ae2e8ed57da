package forge

import (
	"slices"
	"strings"
	"testing"
)

// Quoted, pasted or hidden text is not a command: the approver must have written the command at the top of a comment.
func TestCommandsOf(t *testing.T) {
	digest := strings.Repeat("a1", 16)
	for body, want := range map[string][]command{
		"/headgate approve " + digest:                                   {{verb: "approve", argument: digest}},
		"/headgate approve " + digest + " 0123abc":                      {{verb: "approve", argument: digest, head: "0123abc"}},
		"/headgate explain " + digest + " 0123abc":                      {{verb: "", argument: ""}},
		"/headgate approve " + digest + "\r\nFine with me.":             {{verb: "approve", argument: digest}},
		"/headgate preview\n/headgate explain buckets.s3.example.org\n": {{verb: "preview", argument: ""}, {verb: "explain", argument: "buckets.s3.example.org"}},
		"/headgate":                            {{verb: "", argument: ""}},
		"/headgate approve  " + digest + " \t": {{verb: "approve", argument: digest}},
		"/headgate approve " + digest + " because it is fine": {{verb: "", argument: ""}},
		"/headgate preview\n\n/headgate approve " + digest:    {{verb: "preview", argument: ""}},
		"":                    nil,
		"\n/headgate preview": nil,
		"Please write\n/headgate approve " + digest:                                  nil,
		"> /headgate approve " + digest:                                              nil,
		"    /headgate approve " + digest:                                            nil,
		" /headgate approve " + digest:                                               nil,
		"```\n/headgate approve " + digest + "\n```":                                 nil,
		"`/headgate approve " + digest + "`":                                         nil,
		"<!-- x -->\n/headgate approve " + digest:                                    nil,
		"<!--\n/headgate approve " + digest + "\n-->":                                nil,
		"<details>\n/headgate approve " + digest + "\n</details>":                    nil,
		"/Headgate approve " + digest:                                                nil,
		"/headgate\u00a0approve " + digest:                                           nil,
		"/headgate approve \u202e" + digest:                                          nil,
		"\u200b/headgate approve " + digest:                                          nil,
		"\ufeff/headgate approve " + digest:                                          nil,
		"/headgate approve " + digest + "\u200b":                                     nil,
		"/headgate\tapprove " + digest:                                               nil,
		"/headgateapprove " + digest:                                                 nil,
		"/headgate approve " + strings.Repeat("a", 500):                              nil,
		"/headgate аpprove " + digest:                                                nil, // a Cyrillic letter
		"/headgate approve " + digest + "\x00":                                       nil,
		"/headgate approve " + digest + "\v/headgate preview":                        nil,
		strings.Repeat("/headgate preview\n", maxCommands+3):                         slices.Repeat([]command{{verb: "preview", argument: ""}}, maxCommands),
		"Approved by @alice with a comment: " + digest:                               nil,
		"<!-- headgate/platform -->\n### Blocked\n\n/headgate approve " + digest:     nil,
		"On Monday bob wrote:\n> /headgate approve " + digest + "\n\nNot this time.": nil,
	} {
		if got := commandsOf(body); !slices.Equal(got, want) {
			t.Errorf("commandsOf(%q) = %v, want %v", body, got, want)
		}
	}
}

// FuzzCommandsOf checks that a comment contains a command only if its first line is visible.
func FuzzCommandsOf(f *testing.F) {
	for _, seed := range []string{"/headgate approve " + strings.Repeat("a1", 16), "> /headgate preview", "```\n/headgate", "/headgate explain \u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		all := commandsOf(body)
		if len(all) == 0 {
			return
		}
		line, _, _ := strings.Cut(body, "\n")
		if !strings.HasPrefix(line, "/headgate") || strings.ContainsFunc(strings.TrimRight(line, "\r"), func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) || len(all) > maxCommands {
			t.Errorf("%q has the commands %v", body, all)
		}
	})
}

// An author without a user on the forge may be anyone, even the approver.
func TestAuthors(t *testing.T) {
	a := authors{userOf: gitHubUserOf}
	a.add("c1", user{name: "alice"}, "Alice@example.org")
	a.add("c2", user{}, "alice@example.org")
	a.coauthors("c3", "write\n\nCo-authored-by: Bob <12+bob@users.noreply.github.com>\nco-authored-by: Alice <ALICE@example.org>")
	if !slices.Equal(a.known, []user{{name: "alice"}, {12, "bob"}}) || len(a.unknown) > 0 {
		t.Fatalf("%+v", a)
	}
	a.coauthors("0123456789abcdef", "Co-Authored-By: Eve <eve@example.org>")
	a.add("c5", user{}, "")
	if !slices.Equal(a.unknown, []string{"eve@example.org of commit 0123456789ab", "the author of commit c5"}) {
		t.Errorf("%q", a.unknown)
	}
}

// Anyone can write any text into a commit, so a co-author only ever adds users who may not approve.
func TestCoauthorsProveNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		message string
		author  string // the address of the next commit, without a user on the forge
		by      comment
		unknown int
		wrote   bool
	}{
		"Address":   {"The text must not make the address of an author known.", "Co-authored-by: B <12+bob@users.noreply.github.com>", "12+bob@users.noreply.github.com", comment{author: "mallory", of: 66}, 1, false},
		"Renamed":   {"A co-author who took another name is the same user.", "Co-authored-by: B <12+bob@users.noreply.github.com>", "", comment{author: "robert", of: 12}, 0, true},
		"Taken":     {"Another user has the former name of a co-author.", "Co-authored-by: B <12+bob@users.noreply.github.com>", "", comment{author: "bob", of: 66}, 0, false},
		"WithoutID": {"An old address has no ID, and its user may have another name now.", "Co-authored-by: B <bob@users.noreply.github.com>", "", comment{author: "robert", of: 12}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := authors{userOf: gitHubUserOf}
			a.add("c1", user{1, "alice"}, "alice@example.org")
			a.coauthors("c2", tc.message)
			if tc.author != "" {
				a.add("c3", user{}, tc.author)
			}
			if len(a.unknown) != tc.unknown {
				t.Errorf("%s\nunknown: %q, want %d", tc.reason, a.unknown, tc.unknown)
			}
			if wrote := slices.ContainsFunc(a.known, func(u user) bool { return u.wrote(tc.by) }); wrote != tc.wrote {
				t.Errorf("%s\nan author: %t, want %t", tc.reason, wrote, tc.wrote)
			}
		})
	}
}
