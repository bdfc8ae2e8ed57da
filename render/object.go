package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// An Object is one object that the commit wants, unmarked: plan adds our label
// and annotation.
type Object struct {
	ID         manifest.ID
	APIVersion string
	Origin     manifest.Origin
	Digest     string           // of the content: equal digests mean equal objects
	Size       int              // of the content, in bytes of JSON
	Definition string           // the name of the definition behind this CRD or MRD; "" for everything else
	Package    string           // the package of the tree that it came with; "" for everything else
	Activates  bool             // of an MRD: to be made Active, beside the apply
	Serves     schema.GroupKind // of a CRD: the kind that it serves
	Optional   bool             // applied only where its API is served
	Problem    error            // why this MRD cannot make a CRD
	Secret     bool             // what a Secret holds was copied into it

	// Asks holds the annotations that configure how the object is applied. They are known without decoding it:
	// annotations of headgate.dev and config.kubernetes.io, and those of LeaveBe, labels among them, in lower case. Do
	// not change them.
	Asks map[string]string

	json   []byte                                     // canonical: a fraction of the decoded object, and of the time to read the YAML again
	packed []byte                                     // the same, compressed, of what is only compared
	again  func() (*unstructured.Unstructured, error) // makes the content, where neither is there

	document *manifest.Document // that says it, where one does
}

// Learn returns the result of made, or the result that a Memo remembers for the object and the key. The key names
// everything else that the result depends on.
func (o Object) Learn(key string, made func() (string, error)) (string, error) {
	if o.document == nil {
		return made()
	}
	return o.document.Learn(key+" "+o.Digest, made)
}

// Text returns the content as encode writes it, or the text that a Memo remembers under a name. The output of another
// tool is never remembered: it may hold values that the tool found in a Secret.
func (o Object) Text(name string, encode func(*unstructured.Unstructured) (string, error)) (string, error) {
	made := func() (string, error) {
		u, err := o.Content()
		if err != nil {
			return "", err
		}
		return encode(u)
	}
	if o.document == nil || o.document.IsMade() {
		return made()
	}
	return o.Learn("as "+name, made)
}

// OriginOf is where the value at a path of keys and indices begins, and the origin of the
// object where that cannot be told. The document is parsed for it.
func (o Object) OriginOf(path ...any) manifest.Origin {
	if o.document == nil {
		return o.Origin
	}
	return o.document.OriginOf(path...)
}

// NewObject is an object that was read at an origin. It keeps nothing of u.
func NewObject(u *unstructured.Unstructured, origin manifest.Origin) (Object, error) {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return Object{}, fmt.Errorf("%s: cannot encode %s: %w", origin, manifest.IDOf(u), err)
	}
	o := Object{
		ID:         manifest.IDOf(u),
		APIVersion: u.GetAPIVersion(),
		Origin:     origin,
		Digest:     digest(raw),
		Asks:       asksOf(u),
		Size:       len(raw),
		json:       raw,
	}
	o.Optional = isOptional(o.ID)
	if o.ID.IsCRD() {
		o.Serves.Group, _, _ = unstructured.NestedString(u.Object, "spec", "group")
		o.Serves.Kind, _, _ = unstructured.NestedString(u.Object, "spec", "names", "kind")
	}
	return o, nil
}

// With is the object with another content, at the same origin. It keeps nothing of u.
func (o Object) With(u *unstructured.Unstructured) (Object, error) {
	made, err := NewObject(u, o.Origin)
	made.Definition, made.Package, made.Activates, made.Optional, made.Problem = o.Definition, o.Package, o.Activates, o.Optional, o.Problem
	made.Secret = o.Secret
	return made, err
}

// LeaveBe holds the settings by which an object asks Flux or Config Sync not to write it. Made is set if the tool makes the
// object once and does not update it.
var LeaveBe = []struct {
	Key, Value string
	Made       bool
}{
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled", false},
	{"client.lifecycle.config.k8s.io/mutation", "ignore", true},
	{ApplySettingKey, "Ignore", false},
	{ApplySettingKey, "IfNotPresent", true},
}

// ApplySettingKey is the key by which an object asks Flux how to apply it.
const ApplySettingKey = "kustomize.toolkit.fluxcd.io/ssa"

// The keys by which objects ask Flux and Argo CD to replace them, among other things.
const (
	FluxForceKey   = "kustomize.toolkit.fluxcd.io/force"
	ArgoOptionsKey = "argocd.argoproj.io/sync-options"
)

// Merges reports whether an object asks to leave the fields of other field managers to them.
func Merges(asks map[string]string) bool {
	return strings.EqualFold(asks[ApplySettingKey], "Merge")
}

// askedOfOthers lists the keys, each once, that tell another tool how to apply an object and that Headgate obeys, too.
var askedOfOthers = func() []string {
	keys := []string{ApplySettingKey, FluxForceKey, ArgoOptionsKey}
	for _, be := range LeaveBe {
		if !slices.Contains(keys, be.Key) {
			keys = append(keys, be.Key)
		}
	}
	return keys
}()

// asksOf returns the annotations and labels that configure how an object is applied.
func asksOf(u *unstructured.Unstructured) map[string]string {
	asks := map[string]string{}
	for key, value := range u.GetAnnotations() {
		if space, _, _ := strings.Cut(key, "/"); space == "headgate.dev" || space == "config.kubernetes.io" {
			asks[key] = value
		}
	}
	for _, marks := range []map[string]string{u.GetAnnotations(), u.GetLabels()} { // Flux reads both, in upper and lower case
		for key, value := range marks {
			for _, asked := range askedOfOthers {
				if strings.EqualFold(asked, key) {
					asks[asked] = strings.TrimPrefix(asks[asked]+","+value, ",")
				}
			}
		}
	}
	if len(asks) == 0 {
		return nil
	}
	return asks
}

// pack compresses the content of an object.
func pack(raw []byte) []byte { return bytes.Clone(s2.EncodeBetter(nil, raw)) } // Encode returns a slice of a larger one

// JSON returns the content as JSON, which Digest is computed from. Do not change it.
func (o Object) JSON() ([]byte, error) {
	switch {
	case o.json != nil:
		return o.json, nil
	case o.packed != nil:
		return s2.Decode(nil, o.packed)
	}
	u, err := o.again()
	if err != nil {
		return nil, err
	}
	return json.Marshal(u.Object)
}

// Content decodes the object. Every call makes a new one.
func (o Object) Content() (*unstructured.Unstructured, error) {
	if o.json == nil && o.packed == nil {
		return o.again()
	}
	raw, err := o.JSON()
	if err != nil {
		return nil, fmt.Errorf("%s: cannot decode %s: %w", o.Origin, o.ID, err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("%s: cannot decode %s: %w", o.Origin, o.ID, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// Facts are what a Memo remembers about the object that a definition makes.
type facts struct {
	ID         manifest.ID       `json:"id"`
	APIVersion string            `json:"apiVersion"`
	Digest     string            `json:"digest"`
	Serves     schema.GroupKind  `json:"serves"`
	Asks       map[string]string `json:"asks,omitempty"`
	Size       int               `json:"size"`
	Problem    string            `json:"problem,omitempty"`
}

func (o Object) facts(problem string) (string, error) {
	raw, err := json.Marshal(facts{o.ID, o.APIVersion, o.Digest, o.Serves, o.Asks, o.Size, problem})
	return string(raw), err
}

func factsOf(known string) (f facts, err error) {
	err = json.Unmarshal([]byte(known), &f)
	return f, err
}

// object is an object that has no content yet.
func (f facts) object(origin manifest.Origin) Object {
	return Object{ID: f.ID, APIVersion: f.APIVersion, Origin: origin, Digest: f.Digest, Serves: f.Serves, Asks: f.Asks, Size: f.Size, Optional: isOptional(f.ID)}
}

// mutationAnnotation lists the fields that are taken from live objects.
const mutationAnnotation = "config.kubernetes.io/apply-time-mutation"

// object is an object of the catalogue, which may have come with a package.
func (how Options) object(o manifest.Object, shipper *catalogue.Package) (Object, error) {
	name := ""
	if shipper != nil {
		name = shipper.Name
		if err := how.Conversion.settle(o.Unstructured, shipper); err != nil {
			return Object{}, catalogue.Errorf(o.Origin, "%w", err)
		}
	}
	if _, resolved := o.Unstructured.GetAnnotations()[mutationAnnotation]; !resolved { // else it may be what a reference replaces
		manifest.DropPlaceholderCA(o.Unstructured)
	}
	made, err := NewObject(o.Unstructured, o.Origin)
	made.Package, made.document = name, o.Document
	made.Optional = made.Optional && how.Owner != OwnerCrossplane
	return made, err
}

// isOptional reports whether an object is for Crossplane, and of no use where it is
// not installed.
func isOptional(id manifest.ID) bool {
	return id.Group == crossplane.Packages || crossplane.IsMRAP(id)
}

// digest is 128 bits, in 22 characters.
func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
