package plan

import (
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// If an object moved to another kind, namespace or name, and its new form cannot be created, the object was not meant to be
// removed; often, the new form is misspelt. If an object could not be updated, the cluster still has its old form, with all of its
// dependencies.

// The codes of prunes that were not sent.
const (
	NamespaceNotEmpty Code = "NamespaceNotEmpty" // an object in the namespace that stays
	NotReplaced       Code = "NotReplaced"       // the file of the object, and the object in it now, which was not created
	MayBeReplaced     Code = "MayBeReplaced"     // an object of the same kind that was not created
	StillNamed        Code = "StillNamed"        // an object that names it and was not applied
)

// IsUnserved reports whether no API serves the kind of the object.
func (s Step) IsUnserved() bool { return s.Origin.Path != "" && errors.Is(s.Err, ErrUnserved) }

// MayPassLater reports whether an API server may accept an object after another one is gone. Examples are quotas and ports, which
// depend on existing objects, and webhooks whose error names the other object.
func MayPassLater(err error, object, other manifest.ID) bool {
	return err != nil && (looksAround(err) || other.Name != object.Name && namesIn(err.Error(), map[string]bool{})[other.Name])
}

// looksAround reports whether an API server refused an object because of other objects that it does not name.
func looksAround(err error) bool {
	return strings.Contains(err.Error(), "exceeded quota") || strings.Contains(err.Error(), "already allocated")
}

// IsMoved reports whether two IDs differ only in their namespaces.
func IsMoved(from, to manifest.ID) bool {
	from.Namespace = to.Namespace
	return from == to
}

// Unfinished holds the creates and updates of a plan that failed or still wait. They decide which prunes are not sent, because the
// cluster may still need the objects that they should replace or that they name.
type Unfinished struct {
	steps  []unfinished
	inFile map[string][]int           // creates, by the file that declares them
	ofKind map[schema.GroupKind][]int // creates
	naming map[string][]int           // by the names in the object, live or wanted
	stays  map[string]manifest.ID     // objects whose prune failed, by namespace
	made   map[origin]bool            // files and kinds of created objects
	ends   bool
}

// An origin is a file and the kind of an object in it.
type origin struct {
	path string
	kind schema.GroupKind
}

// An unfinished is a step that failed or waits.
type unfinished struct {
	Step
	err     error           // nil if the step only waits
	inError map[string]bool // the names in err
	names   map[string]bool // the names in the object
}

// Unfinished returns the creates and updates of the plan that failed or wait, according to the outcomes so far.
func (p Plan) Unfinished(done []Outcome) Unfinished {
	u := Unfinished{inFile: map[string][]int{}, ofKind: map[schema.GroupKind][]int{}, naming: map[string][]int{}, stays: map[string]manifest.ID{}, made: map[origin]bool{}, ends: p.Ends != NoEnding}
	failed := make(map[manifest.ID]error, len(done))
	for _, o := range done {
		failed[o.ID] = o.Err
		if _, known := u.stays[o.ID.Namespace]; o.Err != nil && o.Action == Prune && o.ID.Namespace != "" && !known {
			u.stays[o.ID.Namespace] = o.ID
		}
	}
	for _, s := range p.Steps {
		err := s.Err
		if err == nil {
			err = failed[s.ID]
		}
		if !s.writes() || s.Deactivates || err == nil && !s.Waiting() {
			if s.Action == Create {
				u.made[origin{s.Origin.Path, s.ID.GroupKind()}] = true
			}
			continue
		}
		f, i := unfinished{Step: s, err: err, names: map[string]bool{}}, len(u.steps)
		if err != nil {
			f.inError = namesIn(err.Error(), map[string]bool{})
		}
		f.collect()
		for name := range f.names {
			u.naming[name] = append(u.naming[name], i)
		}
		if s.Action == Create && s.Cause != Drift && s.Origin.Path != "" && (err == nil || !looksAround(err)) {
			u.inFile[s.Origin.Path] = append(u.inFile[s.Origin.Path], i)
			u.ofKind[s.ID.GroupKind()] = append(u.ofKind[s.ID.GroupKind()], i)
		}
		u.steps = append(u.steps, f)
	}
	return u
}

// Keeps returns why a prune is not sent; no reason if it is sent.
func (u Unfinished) Keeps(s Step) Reason {
	why, _ := u.keeps(s)
	return why
}

// keeps returns why a prune is not sent. If the prune waits for an unfinished step, it also returns that step.
func (u Unfinished) keeps(s Step) (Reason, *Step) {
	if u.ends || s.Action != Prune || s.Deactivates || s.OnlyFrees() {
		return Reason{}, nil
	}
	if in, stays := u.stays[s.ID.Name]; stays && s.ID.Group == "" && s.ID.Kind == "Namespace" {
		return NamespaceNotEmpty.With(in), nil
	}
	// A webhook or an admission policy may have caused the other refusals. Only an object of the same kind replaces it.
	admits := s.admits()
	for _, i := range u.inFile[s.path] {
		if f := u.steps[i]; s.path != "" && (!admits || f.ID.Group == s.ID.Group) && !f.isDueTo(s.ID) {
			return f.because(NotReplaced.With(f.Origin, f.ID))
		}
	}
	for _, i := range u.ofKind[s.ID.GroupKind()] {
		f := u.steps[i]
		switch {
		case f.isDueTo(s.ID) || isOurUsage(s.ID):
		case IsMoved(s.ID, f.ID):
			return f.because(NotReplaced.With(f.Origin, f.ID))
		case s.path != "" && u.made[origin{s.path, s.ID.GroupKind()}]: // another object replaces it
		default:
			return f.because(MayBeReplaced.With(f.ID))
		}
	}
	for _, i := range u.naming[s.ID.Name] {
		if f := u.steps[i]; !admits && f.namesObject(s.ID) && !f.isDueTo(s.ID) {
			return f.because(StillNamed.With(f.ID))
		}
	}
	return Reason{}, nil
}

// admits reports whether the step's object is a webhook configuration or an admission policy.
func (s Step) admits() bool { return s.ID.Group == "admissionregistration.k8s.io" }

// because returns a reason, and the step if a prune waits for it.
func (f unfinished) because(why Reason) (Reason, *Step) {
	if f.err == nil {
		return why, &f.Step
	}
	return why, nil
}

// isDueTo reports whether the API server names an object in the error of the step.
func (f unfinished) isDueTo(id manifest.ID) bool { return id.Name != f.ID.Name && f.inError[id.Name] }

// namesObject reports whether the step's object names another one.
func (f unfinished) namesObject(id manifest.ID) bool {
	return f.ID != id && f.names[id.Name] && (id.Namespace == "" || f.ID.Namespace == "" || f.ID.Namespace == id.Namespace || f.names[id.Namespace])
}

// collect records the names in the current and in the wanted object.
func (f *unfinished) collect() {
	wanted, _ := f.Object() // an object that cannot be decoded names nothing
	for _, u := range []*unstructured.Unstructured{f.Live, wanted} {
		if u == nil {
			continue
		}
		for key, v := range u.Object {
			switch key {
			case "apiVersion", "kind", "status":
			case "metadata":
				walkNames(u.GetAnnotations(), f.names)
				for _, owner := range u.GetOwnerReferences() {
					f.names[owner.Name] = true
				}
			default:
				if crossplane.DeclaresKind(f.ID) { // of a definition, only the conversion: schemas contain prose
					conversion, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "conversion")
					v = conversion
				}
				collectNames(v, f.names)
			}
		}
	}
}

// walkNames records the names in annotations. References and dependencies are among them.
func walkNames(annotations map[string]string, into map[string]bool) {
	for key, value := range annotations {
		if key != "kubectl.kubernetes.io/last-applied-configuration" {
			namesIn(value, into)
		}
	}
}

// longestValue is the longest value in which to look for names. Longer values are files.
const longestValue = 4096

func collectNames(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if key != "apiVersion" && key != "kind" {
				collectNames(item, into)
			}
		}
	case []any:
		for _, item := range v {
			collectNames(item, into)
		}
	case string:
		if len(v) <= longestValue {
			namesIn(v, into)
		}
	}
}

// namesIn records possible names of objects in a text: the text itself, its words, and the first label of a host name.
func namesIn(text string, into map[string]bool) map[string]bool {
	into[text] = true
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}) {
		word = strings.Trim(word, ".-")
		into[word] = true
		if host, _, is := strings.Cut(word, "."); is && (strings.Contains(text, "://") || strings.Contains(word, ".svc")) {
			into[host] = true
		}
	}
	return into
}

// withhold returns the plan with prunes that unfinished steps prevent: they fail if that step failed, and wait if it waits.
func (p Plan) withhold(u Unfinished, except func(Step) bool) Plan {
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Err != nil || except(*s) {
			continue
		}
		switch why, waits := u.keeps(*s); {
		case why.None():
		case waits == nil:
			s.Err = ReasonError{why}
		default:
			s.wait(waits.ID, AwaitsUnfinished.With(waits.ID))
		}
	}
	return p
}
