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

// An Object is an object that the commit wants, without our marks: plan adds our label and annotation.
type Object struct {
	ID         manifest.ID
	APIVersion string
	Origin     manifest.Origin
	Digest     string           // hash of the content: equal digests mean equal objects
	Size       int              // size of the content, in bytes of JSON
	Definition string           // the name of the definition that makes this CRD or MRD; "" for other objects
	Package    string           // the package of the tree that contains it; "" for other objects
	Activates  bool             // for an MRD: make it Active, in addition to the apply
	Serves     schema.GroupKind // for a CRD: the kind that it serves
	Optional   bool             // applied only if its API is served
	Problem    error            // why this MRD cannot make a CRD
	Secret     bool             // contains values that were copied from a Secret

	// Asks holds the annotations that configure how the object is applied. They are known without decoding the object: annotations
	// of headgate.dev and config.kubernetes.io, and the annotations and labels of LeaveBe in lower case. Callers must not change
	// the map.
	Asks map[string]string

	json   []byte                                     // canonical; a fraction of the decoded object's size, and of the time to read the YAML again
	packed []byte                                     // json, compressed, for objects that are only compared
	again  func() (*unstructured.Unstructured, error) // makes the content again if json and packed are nil

	document *manifest.Document // the document that declares it, or nil
}

// Learn returns the result of made, or the result that a Memo stores for the object and the key. The key identifies everything else
// that the result depends on.
func (o Object) Learn(key string, made func() (string, error)) (string, error) {
	if o.document == nil {
		return made()
	}
	return o.document.Learn(key+" "+o.Digest, made)
}

// Text returns the content as encode writes it, or the text that a Memo stores under a name. Text never stores the output of
// another tool, because it may contain values that the tool read from a Secret.
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

// OriginOf returns where the value at a path of keys and indices begins, or the origin of the object if that is not known. It
// parses the document.
func (o Object) OriginOf(path ...any) manifest.Origin {
	if o.document == nil {
		return o.Origin
	}
	return o.document.OriginOf(path...)
}

// OriginsAt is OriginOf for several paths. It parses the document only once.
func (o Object) OriginsAt(paths ...[]any) []manifest.Origin {
	if o.document == nil {
		return slices.Repeat([]manifest.Origin{o.Origin}, len(paths))
	}
	return o.document.OriginsAt(paths...)
}

// IsMade reports whether a tool, such as kustomize, built the object, so that no file contains it.
func (o Object) IsMade() bool { return o.document != nil && o.document.IsMade() }

// MisreadKeys returns the keys of the object that YAML 1.1 does not read as they are written.
func (o Object) MisreadKeys() []manifest.MisreadKey {
	if o.document == nil {
		return nil
	}
	return o.document.MisreadKeys()
}

// NewObject returns an object that was read at an origin. It does not keep u.
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

// With returns the object with other content, at the same origin. It does not keep u.
func (o Object) With(u *unstructured.Unstructured) (Object, error) {
	made, err := NewObject(u, o.Origin)
	made.Definition, made.Package, made.Activates, made.Optional, made.Problem = o.Definition, o.Package, o.Activates, o.Optional, o.Problem
	made.Secret = o.Secret
	return made, err
}

// LeaveBe holds the settings with which an object asks Flux or Config Sync not to write it. Made is set if the tool creates the
// object once but does not update it.
var LeaveBe = []struct {
	Key, Value string
	Made       bool
}{
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled", false},
	{"client.lifecycle.config.k8s.io/mutation", "ignore", true},
	{ApplySettingKey, "Ignore", false},
	{ApplySettingKey, "IfNotPresent", true},
}

// ApplySettingKey is the key with which an object tells Flux how to apply it.
const ApplySettingKey = "kustomize.toolkit.fluxcd.io/ssa"

// The keys with which objects ask Flux and Argo CD, among other things, to replace them.
const (
	FluxForceKey   = "kustomize.toolkit.fluxcd.io/force"
	ArgoOptionsKey = "argocd.argoproj.io/sync-options"
)

// Merges reports whether an object asks that the fields of other field managers stay unchanged.
func Merges(asks map[string]string) bool {
	return strings.EqualFold(asks[ApplySettingKey], "Merge")
}

// askedOfOthers lists the keys, each once, that tell another tool how to apply an object and that Headgate also obeys.
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
	for _, marks := range []map[string]string{u.GetAnnotations(), u.GetLabels()} { // Flux reads both annotations and labels, in upper and lower case
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

// JSON returns the content as JSON, from which Digest is computed. Callers must not change it.
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

// Content decodes the object. Every call returns a new copy.
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

// facts are what a Memo stores about the object that a definition makes.
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

// object returns an object without content.
func (f facts) object(origin manifest.Origin) Object {
	return Object{ID: f.ID, APIVersion: f.APIVersion, Origin: origin, Digest: f.Digest, Serves: f.Serves, Asks: f.Asks, Size: f.Size, Optional: isOptional(f.ID)}
}

// mutationAnnotation lists the fields whose values come from live objects.
const mutationAnnotation = "config.kubernetes.io/apply-time-mutation"

// object returns an object of the catalogue. shipper is the package that contains it, or nil.
func (how Options) object(o manifest.Object, shipper *catalogue.Package) (Object, error) {
	name := ""
	if shipper != nil {
		name = shipper.Name
		if err := how.Conversion.settle(o.Unstructured, shipper); err != nil {
			return Object{}, catalogue.Errorf(o.Origin, "%w", err)
		}
	}
	if _, resolved := o.Unstructured.GetAnnotations()[mutationAnnotation]; !resolved { // otherwise, a reference may replace it
		manifest.DropPlaceholderCA(o.Unstructured)
	}
	made, err := NewObject(o.Unstructured, o.Origin)
	made.Package, made.document = name, o.Document
	made.Optional = made.Optional && how.Owner != OwnerCrossplane
	return made, err
}

// isOptional reports whether an object is for Crossplane, and useless in a cluster without it.
func isOptional(id manifest.ID) bool {
	return id.Group == crossplane.Packages || crossplane.IsMRAP(id)
}

// digest returns 128 bits of a hash, as 22 characters.
func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
