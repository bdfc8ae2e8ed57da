package report

import (
	"errors"
	"fmt"
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

// CodeOf returns the code of a reason for programs; "" if the reason is only a sentence.
func CodeOf(r plan.Reason) plan.Code {
	if r.Code == plan.Text {
		return ""
	}
	return r.Code
}

// words holds the wording of every code.
var words = map[plan.Code]wording{
	plan.Text:     say("%s", text),
	plan.Both:     say("%s; %s", reason, reason),
	plan.Approved: say("approved past the guard %q: %s", text, reason),
	plan.NotGone:  say("not gone after %s: %s", text, reason),

	plan.PackageInstalls:     say("%s is installed with it, and %s", text, reason),
	plan.PackageInstallsMany: say("%s is installed with it, and %s; and so it is with %s more", text, reason, count("definition")),

	guard.BothMakeCRDs:          say("Crossplane runs here, and this sync makes the CRDs itself: both would; set crdOwner: Crossplane"),
	guard.CrossplaneCame:        say("this sync made the CRDs so far, and Crossplane runs here now; set crdOwner: Crossplane to hand them over, which deletes nothing, or crdOwner: Headgate to go on making them"),
	guard.CrossplaneLeft:        say("Crossplane made the CRDs so far, and its API is not served any more; install it again, or set crdOwner: Headgate to have this sync make them"),
	guard.OnlyMarked:            say("the inventory was lost, and only the marks on the object tell that this sync applied it; approve the prune, or run 'headgate release --rebuilt' to keep such objects"),
	guard.RebuildsBeforeEnd:     say("a part of the inventory was lost and is being rebuilt; look at what is listed, and destroy once more"),
	guard.Rebuilds:              say("a part of the inventory was lost and is being rebuilt; the next pass decides"),
	guard.NothingWanted:         say("the commit wants nothing at all; is the path right?"),
	guard.NoDefinitions:         say("the commit declares no definition at all, and this sync owns CRDs; is the path right?"),
	guard.NoOwnDefinitions:      say("the commit declares no definition of its own, and this sync owns ManagedResourceDefinitions; is the path right?"),
	guard.DeletesExternal:       say("deleting it would delete what it stands for outside of the cluster; set instances: Prune to allow that, or orphan it first"),
	guard.TooManyPrunes:         say("%s prunes in one pass are more than %s; raise maxPrunes if that is meant", number, number),
	guard.DefinitionLost:        say("the package in %s declared it as a definition in the last applied commit, and it is a plain CRD now, which is made whatever policies name; move it back, or list it in .headgateignore", text),
	guard.DirectoryNotPackage:   say("the directory %s was a package in the last applied commit and is not one now, so this would follow; put its crossplane.yaml back, declare it in packages, list it in .headgateignore, or delete it", text),
	guard.DependantKept:         say("%s depends on it, and is kept", the),
	guard.DependantStays:        say("%s depends on it, and stays; declare this again, or take out what says so there", the),
	guard.UserStays:             say("%s has to go first, and stays; see there why", the),
	guard.InstalledByRevision:   say("the package revision %s installs it; the commit's copy is not applied", text),
	guard.UsageInCommit:         say("the %s of this commit protects it; remove that first, or declare the object again", object),
	guard.LabelledInUse:         say("a Crossplane Usage protects it (label %s); delete the Usage first", text),
	guard.UsagesNotRead:         say("it has not been read whether a Crossplane Usage protects it"),
	guard.UsagesUnknown:         say("whether a Crossplane Usage protects it cannot be read (%s)", text),
	guard.ProtectedByUsage:      say("the %s protects it; delete that first", text),
	guard.LabelWithoutUsage:     say("it is labelled %s, and no Usage names it; Crossplane takes the label off in a moment; if it stays, take it off by hand", text),
	guard.OwnedByAnother:        say("%s owns it; delete it there", text),
	guard.MarkMissing:           say("it does not carry the mark of this sync any more; delete it by hand if nobody needs it"),
	guard.NotProven:             say("it carries the marks of this sync, and nothing proves that Headgate applied it; delete it by hand if nobody needs it"),
	guard.AnotherUID:            say("it is another object than the one that was applied (its UID changed); delete it by hand if nobody needs it"),
	guard.DriftRefused:          say("drift is reported, not corrected: %s", text),
	guard.DriftReported:         say("drift is reported, not corrected"),
	guard.FightRests:            say("fight: %s; it is left alone for a while", text),
	guard.AsksNotToCreate:       say("%s: %s in the commit asks not to make it", text, text),
	guard.AnnotationAsksToLeave: say("its annotation %s: %s asks not to update it", text, text),
	guard.LabelAsksToLeave:      say("its label %s: %s asks not to update it", text, text),
	guard.CommitAsksToLeave:     say("%s: %s in the commit asks not to update it", text, text),
	guard.WrittenByHeadgate:     say("it is %s, which only Headgate itself writes; remove it from the repository", text),
	guard.HoldsInventory:        say("the inventory of this sync lives in it"),
	guard.NeverPruned:           say("it is %s, which is never pruned", text),
	guard.PausedPrune:           say("%s; take the annotation out when whoever set it is done", text),
	guard.PausedUpdate:          say("%s: it stays as it is until they take that out", text),
	guard.WantedInside:          say("the commit still wants %s in it; declare the namespace again, or move that", object),
	guard.StaysInside:           say("%s in it stays, and would be deleted with it; see there why", object),
	guard.NoRevision:            say("it is not taken back: no package revision controls it, so nothing would bring the definition back"),
	guard.RevisionInactive:      say("it is not taken back: its package revision %s is not active, so nothing would bring the definition back", text),
	guard.NoSafeStart:           say("it is not taken back: its package %s has no safe-start, so Crossplane would activate it again", text),

	plan.NotUpdatedAnyMore:    say("the new version does not hold it: it stays as it is, and nothing brings it up to date"),
	plan.KindDropped:          say("the new version does not hold it: its objects stay, and no controller looks after them"),
	plan.ObjectsNotCounted:    say("its custom resources cannot be counted (%s)", text),
	plan.ObjectsExist:         say("%s%s", exist("custom resource"), example),
	plan.NoObjects:            say("no custom resource exists"),
	plan.ManagedFieldsMigrate: say("its managed fields name %s, which is no longer served: they are migrated, and only then the API server can apply it", list),
	plan.FinalizerLeft:        say("our finalizer is left on it, of a pass that was to delete it"),
	plan.TakenOver:            say("it is taken over from %s", text),
	plan.NotNamed:             say("no policy names it any more"),
	plan.RevisionTouched:      say("it is touched, so that Crossplane brings %s back, inactive", count("definition")),
}

// problem returns an error as people read it.
func problem(err error) string {
	if p, ok := errors.AsType[plan.ReasonError](err); ok {
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
