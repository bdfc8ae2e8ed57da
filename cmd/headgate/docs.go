package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crd"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func newDocs(t *terminal) *cobra.Command {
	var (
		from   sourceFlags
		of     docsFlags
		format = oneOf("text", "json", "yaml", "markdown")
	)
	cmd := &cobra.Command{
		Use:   "docs NAME[.FIELD...] [SOURCE] [flags]",
		Short: "Document a definition: its fields, versions and connection details",
		Long: `Docs documents a definition of a commit, active or not: its description; every field with its
type, constraints and default, and whether it is required or immutable; its versions; and the
keys of the connection secret, if the definition or an object of kind ConnectionDetails has
them ('headgate convert --help' shows one).

NAME is the full name of a definition, its beginning, its plural or its kind, if that
matches only one. Docs also documents CRDs of the commit that are not definitions. FIELD is
the path of a field, as in kubectl explain; lists and maps are one step further. An object
without a field that is 'required to create' is accepted by the API server, but the provider
only observes it: it creates and updates nothing.

` + aboutSource + `

Exit codes: 0 documented, 1 not found or an error, 2 wrong usage.`,
		Example: `  headgate docs buckets.s3.aws.m.upbound.io ./provider-aws
  headgate docs Bucket.spec.forProvider --depth 1
  headgate docs buckets.s3 --version v1beta1 -o markdown > docs/bucket.md`,
		Args: takes(1, 2, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, ref, err := t.source(&from, args[1:])
			if err != nil {
				return err
			}
			var s v1alpha1.Sync
			if err := of.into(&s.Spec); err != nil {
				return err
			}
			r, err := t.wire(s, source, t.surroundings(&from, source), cluster.Options{})
			if err != nil {
				return err
			}
			d, err := of.read(cmd.Context(), r, ref, args[0])
			t.progress.Stop()
			if err != nil {
				return err
			}
			switch format.value {
			case "json":
				return t.json(d)
			case "yaml":
				return t.yaml(d)
			case "markdown":
				return d.markdown(t.out)
			}
			return d.text(t.out)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&of.version, "version", "", "`version` to document (default: the one that kubectl takes)")
	addNumber(cmd, &of.depth, "depth", 3, v1alpha1.Range{Most: 5000}, "how many levels of fields to show; 0 is all")
	from.addTo(cmd)
	t.completeDefinition(cmd, &from)
	of.packageFlags.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// docsFlags holds the flags of docs.
type docsFlags struct {
	packageFlags
	version string
	depth   int
}

// documentation describes a definition or CRD, one of its versions and one of its fields.
type documentation struct {
	APIVersion        string                       `json:"apiVersion"`
	Kind              string                       `json:"kind"`
	Revision          string                       `json:"revision,omitempty"`
	Name              string                       `json:"name"`
	Of                string                       `json:"of"` // the kind of the documented objects
	Scope             string                       `json:"scope"`
	Origin            manifest.Origin              `json:"origin"`
	Package           *packageOf                   `json:"package,omitempty"`
	Versions          []crd.Version                `json:"versions"`
	ConnectionDetails []catalogue.ConnectionDetail `json:"connectionDetails,omitempty"`
	Version           string                       `json:"version"` // of the field
	Path              string                       `json:"path,omitempty"`
	Field             crd.Field                    `json:"field"`
}

// read reads the documentation of the definition or CRD with this name in a commit.
func (f *docsFlags) read(ctx context.Context, from reconcile.Reconciler, ref, name string) (documentation, error) {
	in, err := from.Source.Fetch(ctx, ref)
	if err != nil {
		return documentation{}, err
	}
	c, err := render.Catalogue(in, from.Options)
	if err != nil {
		return documentation{}, err
	}
	all := kindsOf(c)
	d, path, err := findField(all.definitions, name)
	if err != nil {
		return documentation{}, err
	}
	u, origin, err := all.content(d)
	if err != nil {
		return documentation{}, err
	}

	made := documentation{
		APIVersion: "headgate.dev/v1alpha1",
		Kind:       "Documentation",
		Revision:   in.Revision,
		Name:       d.Name,
		Of:         d.Kind,
		Scope:      d.Scope,
		Origin:     origin,
		Package:    packageRef(d.Package),
		Versions:   crd.VersionsOf(u),
		Path:       strings.Join(path, "."),
	}
	details, _, _ := unstructured.NestedSlice(u.Object, "spec", "connectionDetails") // validated when the definition was read
	for _, v := range details {
		detail, _ := v.(map[string]any)
		key, _ := detail["name"].(string)
		description, _ := detail["description"].(string)
		made.ConnectionDetails = append(made.ConnectionDetails, catalogue.ConnectionDetail{Name: key, Description: description})
	}

	version, err := f.versionOf(made)
	if err != nil {
		return documentation{}, err
	}
	made.Version = version.Name
	levels := f.depth
	if levels == 0 {
		levels = -1
	}
	made.Field, err = crd.FieldAt(version.Schema, path, levels)
	if no, ok := errors.AsType[crd.NoFieldError](err); ok {
		return documentation{}, fmt.Errorf("%s %s: %w; %s", d.Name, version.Name, err, nearby(no))
	}
	if len(path) == 0 { // every kind has these fields
		made.Field.Fields = slices.DeleteFunc(made.Field.Fields, func(f crd.Field) bool {
			return f.Name == "apiVersion" || f.Name == "kind" || f.Name == "metadata"
		})
	}
	return made, err
}

// kinds holds everything that can be documented: definitions, and CRDs that are not definitions.
type kinds struct {
	definitions []render.DecidedDefinition
	crds        map[string]manifest.Object // by name; their definitions have no document
}

func kindsOf(c catalogue.Catalogue) kinds {
	all := kinds{crds: map[string]manifest.Object{}}
	add := func(d *catalogue.Definition) {
		all.definitions = append(all.definitions, render.DecidedDefinition{Decision: activation.Decision{Definition: d}})
	}
	for _, d := range c.Definitions {
		add(d)
	}
	for _, o := range c.Objects {
		if !o.ID().IsCRD() {
			continue
		}
		text := func(path ...string) string {
			s, _, _ := unstructured.NestedString(o.Object, path...) // "" if the value is not a string
			return s
		}
		all.crds[o.GetName()] = o
		add(&catalogue.Definition{
			Name: o.GetName(), Group: text("spec", "group"), Kind: text("spec", "names", "kind"), Plural: text("spec", "names", "plural"),
			Scope: text("spec", "scope"), Package: c.Shipped[o.ID()],
		})
	}
	return all
}

// content returns the MRD of a definition, or the CRD that is not a definition, and its origin.
func (k kinds) content(d render.DecidedDefinition) (*unstructured.Unstructured, manifest.Origin, error) {
	if d.Document == nil {
		o := k.crds[d.Name]
		return o.Unstructured, o.Origin, nil
	}
	u, err := d.Declared()
	return u, d.Origin(), err
}

// findField returns the definition that name refers to, and the steps of the path to the field.
func findField(definitions []render.DecidedDefinition, name string) (render.DecidedDefinition, []string, error) {
	longest := -1
	for i, d := range definitions {
		if (name == d.Name || strings.HasPrefix(name, d.Name+".")) && (longest < 0 || len(d.Name) > len(definitions[longest].Name)) {
			longest = i
		}
	}
	if longest >= 0 {
		d := definitions[longest]
		return d, stepsOf(strings.TrimPrefix(name[len(d.Name):], ".")), nil
	}
	steps := strings.Split(name, ".")
	begin := slices.IndexFunc(steps, func(s string) bool {
		return slices.Contains([]string{"spec", "status", "metadata", "apiVersion", "kind"}, s)
	})
	if begin < 1 {
		begin = len(steps)
	}
	d, err := find(definitions, strings.Join(steps[:begin], "."))
	return d, stepsOf(strings.Join(steps[begin:], ".")), err
}

func stepsOf(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// versionOf returns the requested version, or the first one if no version was requested.
func (f *docsFlags) versionOf(d documentation) (crd.Version, error) {
	names := make([]string, len(d.Versions))
	for i, v := range d.Versions {
		if f.version == "" || v.Name == f.version {
			return v, nil
		}
		names[i] = v.Name
	}
	return crd.Version{}, fmt.Errorf("%s has no version %q; it has %s", d.Name, f.version, strings.Join(names, ", "))
}

// nearby describes the existing fields with the most similar names.
func nearby(no crd.NoFieldError) string {
	if len(no.Have) == 0 {
		return "there are none"
	}
	return "the nearest are " + strings.Join(nearest(no.Have, no.Name), ", ")
}
