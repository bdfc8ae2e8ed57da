package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// Words returns a reason as people read it; "" if there is none. Values that do not fit the wording of the code give a
// text that begins with "%!", as those of package fmt do.
func Words(r plan.Reason) string {
	if r.None() {
		return ""
	}
	w, known := words[r.Code]
	if !known || len(r.Values) != len(w.forms) {
		return "%!" + r.String()
	}
	texts := make([]any, len(r.Values))
	for i, v := range r.Values {
		if inner, is := v.(plan.Reason); is && w.forms[i] == nil {
			texts[i] = Words(inner)
			continue
		}
		text, fits := "", false
		if w.forms[i] != nil {
			text, fits = w.forms[i](v)
		}
		if !fits {
			return "%!" + r.String()
		}
		texts[i] = text
	}
	return fmt.Sprintf(w.format, texts...)
}

// words holds the wording of every code.
var words = map[plan.Code]wording{
	plan.Text:     say("%s", text),
	plan.Both:     say("%s; %s", reason, reason),
	plan.Approved: say("approved past the guard %q: %s", text, reason),
	plan.NotGone:  say("not gone after %s: %s", text, reason),

	guard.PackageInstalls:     say("%s is installed with it, and %s", text, reason),
	guard.PackageInstallsMany: say("%s is installed with it, and %s; and so it is with %s more", text, reason, count("definition")),
}

// problem returns an error as people read it.
func problem(err error) string {
	if p, ok := errors.AsType[plan.Problem](err); ok {
		return Words(p.Reason)
	}
	return err.Error()
}

// A wording puts every value of a reason into a format, each in its own form.
type wording struct {
	format string
	forms  []form
}

func say(format string, forms ...form) wording { return wording{format, forms} }

// A form returns one value as a text. It reports false if the value is of another type.
type form func(value any) (string, bool)

// reason is the form of another reason: Words words that, too.
var reason form

// text is the form of a string.
func text(value any) (string, bool) {
	s, fits := value.(string)
	return s, fits
}

// number is the form of an integer.
func number(value any) (string, bool) {
	n, fits := integer(value)
	return fmt.Sprint(n), fits
}

func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// count is the form of how many of something there are: "1 object", "2 objects".
func count(noun string) form {
	return func(value any) (string, bool) {
		n, fits := integer(value)
		return moreOf(int(n), noun, noun+"s"), fits
	}
}

// exist is count with a verb: "1 object exists", "2 objects exist".
func exist(noun string) form {
	return func(value any) (string, bool) {
		n, fits := integer(value)
		return moreOf(int(n), noun+" exists", noun+"s exist"), fits
	}
}

// example is the form of an example that may be missing.
func example(value any) (string, bool) {
	s, fits := value.(string)
	if s != "" {
		s = ", for example " + s
	}
	return s, fits
}

// orNone is the form of a string that may be empty.
func orNone(value any) (string, bool) {
	s, fits := value.(string)
	if s == "" {
		s = "nothing"
	}
	return s, fits
}

// object is the form of an object.
func object(value any) (string, bool) {
	id, fits := value.(manifest.ID)
	return id.String(), fits
}

// the is the form of an object inside of a sentence: "the Secret team/token".
func the(value any) (string, bool) {
	id, fits := value.(manifest.ID)
	return fmt.Sprintf("the %s %s", id.Kind, strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")), fits
}

// list is the form of strings, separated by commas.
func list(value any) (string, bool) {
	all, fits := value.([]string)
	return strings.Join(all, ", "), fits
}

// firstOf is list with no more than the first few.
func firstOf(most int) form {
	return func(value any) (string, bool) {
		all, fits := value.([]string)
		if n := len(all); n > most {
			all = append(slices.Clip(all[:most]), fmt.Sprintf("and %d more", n-most))
		}
		return strings.Join(all, ", "), fits
	}
}
