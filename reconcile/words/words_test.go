package words

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile/reason"
)

// documentation is the folder with the pages that explain codes.
const documentation = "../manual"

// TestEveryCodeHasWords compares the codes that the core declares with the wordings, which list all codes.
func TestEveryCodeHasWords(t *testing.T) {
	declared := given.Codes(t, "../reason")
	if len(declared) < 2 {
		t.Fatalf("found the codes %v", declared)
	}
	for code, d := range declared {
		if string(code) != d.Name {
			t.Errorf("the code %s has the value %q", d.Name, code)
		}
		if d.Comment == "" || d.Group == "" {
			t.Errorf("the code %s has no comment on its line, or its block does not begin with %q", code, "// The codes of")
		}
		w, worded := words[code]
		if !worded {
			t.Errorf("the code %s has no words", code)
		}
		values := make([]any, len(w.forms))
		for i := range values {
			values[i] = fmt.Sprintf("value-%d", i)
		}
		output := fmt.Sprintf(w.format, values...)
		for _, value := range values {
			if !strings.Contains(output, value.(string)) {
				t.Errorf("the wording of %s has no place for %s: %s", code, value, output)
			}
		}
		if strings.Contains(output, "%!") {
			t.Errorf("the wording of %s has more places than %d values: %s", code, len(values), output)
		}
	}
	for code := range words {
		if _, is := declared[code]; !is {
			t.Errorf("%s has words, and is no code", code)
		}
	}
}

// TestCodesAreDocumented compares the pages of guards and codes with the codes. With -update it rewrites the title of each page
// about a guard, the messages of each page, and the list of all codes.
func TestCodesAreDocumented(t *testing.T) {
	declared := given.Codes(t, "../reason")
	pages, err := filepath.Glob(filepath.Join(documentation, "*", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	slices.Sort(pages)
	documented := map[string]string{} // the page of each code
	var list strings.Builder
	for _, page := range pages {
		text := read(t, page)
		text = titled.ReplaceAllStringFunc(text, func(found string) string {
			m := titled.FindStringSubmatch(found)
			sentence, _, _ := strings.Cut(meaning(words[reason.Code(m[2])], declared[reason.Code(m[2])]), "; ")
			sentence, _, _ = strings.Cut(sentence, ". ")
			return fmt.Sprintf("# %s%s\n\n<!-- title: %[1]s%[3]s -->", m[1], optional.ReplaceAllString(sentence, ""), m[2])
		})
		var here []string
		text = coded.ReplaceAllStringFunc(text, func(found string) string {
			about := coded.FindStringSubmatch(found)[1]
			var b strings.Builder
			for _, code := range slices.Sorted(maps.Keys(declared)) {
				d := declared[code]
				if !slices.Contains(strings.Split(about, "; "), d.Group) {
					continue
				}
				message := meaning(words[code], d)
				if strings.ContainsAny(message, "<*_") || strings.Contains(message, "{{") {
					t.Errorf("the message of %s would be read as Markdown or as a template: %s", code, message)
				}
				fmt.Fprintf(&b, "### %s\n\n> %s\n\n", code, message)
				documented[d.Group] = page
				here = append(here, fmt.Sprintf("[%s](%s#%s)", code, strings.TrimPrefix(filepath.ToSlash(page), documentation+"/"), strings.ToLower(string(code))))
			}
			if b.Len() == 0 {
				t.Errorf("%s has a place for codes of %s, and there are none", page, about)
			}
			return fmt.Sprintf("<!-- begin: codes of %s -->\n\n%s<!-- end: codes -->", about, b.String())
		})
		slices.Sort(here)
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		fmt.Fprintf(&list, "**%s**\n: %s\n\n", title, strings.Join(slices.Compact(here), ", "))
		golden.Compare(t, page, text)
	}
	for code, d := range declared {
		if documented[d.Group] == "" {
			t.Errorf("no page of %s has a line <!-- begin: codes of %s -->, so %s is not documented", documentation, d.Group, code)
		}
	}
	index := filepath.Join(documentation, "codes.md")
	before, rest, _ := strings.Cut(read(t, index), "<!-- begin: list -->\n")
	_, after, found := strings.Cut(rest, "<!-- end: list -->")
	if !found {
		t.Fatalf("%s has no place for the list of codes", index)
	}
	golden.Compare(t, index, before+"<!-- begin: list -->\n\n"+strings.ReplaceAll(list.String(), "\n: ", "<br>\n")+"<!-- end: list -->"+after)
}

var (
	// optional matches the place of a value that may be missing, at the end of a sentence.
	optional = regexp.MustCompile(`\b…$`)
	// titled matches the title of a page about a guard, and the code whose message it is.
	titled = regexp.MustCompile(`(?m)^# .*\n\n<!-- title: (|.*: )(\w+) -->`)
	// coded matches the messages of a page, and what they are about.
	coded = regexp.MustCompile(`(?s)<!-- begin: codes of ([^>]*) -->\n.*?<!-- end: codes -->`)
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// meaning returns the wording of a code with … for its values. If nothing else remains, it returns the code's comment.
func meaning(w wording, d given.Code) string {
	output := regexp.MustCompile(`%(\[\d\])?[sq]`).ReplaceAllString(w.format, "…")
	if strings.Trim(output, "…,;: ()") == "" {
		return d.Comment
	}
	return strings.ReplaceAll(output, "……", "… …")
}

// TestMisfits proves that values that do not fit a wording are visible, instead of a sentence without meaning.
func TestMisfits(t *testing.T) {
	for name, r := range map[string]reason.Reason{
		"Unknown": reason.Code("Nonsense").With(),
		"Few":     reason.Failed.With(),
		"Many":    reason.Failed.With("a", "b"),
		"Type":    reason.Failed.With(1),
	} {
		if output := Of(r); !strings.HasPrefix(output, "%!") {
			t.Errorf("%s: %q", name, output)
		}
	}
	if output := Of(reason.Both.With(reason.Failed.With("this"), reason.Failed.With("that"))); output != "this; that" {
		t.Errorf("Of(both) = %q", output)
	}
}
