package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crd"
	"headgate.dev/headgate/render/manifest"
)

// text writes documentation for a terminal.
func (d documentation) text(w io.Writer) error {
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	say("%s: %s, %s", d.Name, d.Of, strings.ToLower(d.Scope))
	if p := d.Package; p != nil {
		say("  package: %s in %s", p.Name, p.Directory)
	}
	say("  declared: %s", d.Origin)
	for _, v := range d.Versions {
		say("  version %s", versionLine(v))
	}
	if len(d.ConnectionDetails) > 0 {
		say("  connection details:")
	}
	for _, detail := range d.ConnectionDetails {
		say("    %s: %s", detail.Name, detail.Description)
	}
	say("\n%s", strings.TrimSpace(d.Version+" "+d.Path))
	if d.Path != "" {
		d.field(say, d.Field, "", strings.Split(d.Path, "."))
	} else {
		describe(say, d.Field.Description, "    ")
		for _, f := range d.Field.Fields {
			d.field(say, f, "", []string{f.Name})
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// field writes a field and its subfields.
func (d documentation) field(say func(string, ...any), f crd.Field, indent string, path []string) {
	say("%s%s (%s)", indent, f.Name, strings.Join(traits(f), ", "))
	within := indent + "    "
	describe(say, f.Description, within)
	for _, line := range limits(f) {
		say("%s%s", within, line)
	}
	if f.Below > 0 {
		say("%s… %s below: headgate docs %s.%s", within, manifest.Count(f.Below, "field"), d.Name, strings.Join(path, "."))
	}
	for _, below := range f.Fields {
		d.field(say, below, indent+"  ", append(slices.Clip(path), below.Name))
	}
}

// describe writes a text, wrapped into lines.
func describe(say func(string, ...any), text, indent string) {
	const width = 100
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > width {
			say("%s", line)
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	if len(line) > len(indent) {
		say("%s", line)
	}
}

func versionLine(v crd.Version) string {
	var is []string
	for _, trait := range []struct {
		holds bool
		word  string
	}{{v.Served, "served"}, {!v.Served, "not served"}, {v.Storage, "stored"}, {v.Deprecated, "deprecated"}} {
		if trait.holds {
			is = append(is, trait.word)
		}
	}
	line := v.Name + ": " + strings.Join(is, ", ")
	if v.Warning != "" {
		line += ": " + v.Warning
	}
	return line
}

// traits returns the type and the properties of a field, each in one to three words.
func traits(f crd.Field) []string {
	all := []string{f.Type}
	if f.Format != "" {
		all = append(all, f.Format)
	}
	switch {
	case f.Required:
		all = append(all, "required")
	case f.RequiredToCreate:
		all = append(all, "required to create")
	}
	if f.Immutable {
		all = append(all, "immutable")
	}
	return all
}

// limits returns the lines on the constraints of a field.
func limits(f crd.Field) []string {
	var all []string
	if f.Default != nil {
		all = append(all, "default: "+asJSON(f.Default))
	}
	if len(f.Enum) > 0 {
		values := make([]string, len(f.Enum))
		for i, v := range f.Enum {
			values[i] = asJSON(v)
		}
		all = append(all, "one of: "+strings.Join(values, ", "))
	}
	if len(f.Limits) > 0 {
		all = append(all, strings.Join(f.Limits, ", "))
	}
	for _, rule := range f.Rules {
		all = append(all, "rule: "+rule)
	}
	return all
}

// asJSON returns a schema value as JSON, as a manifest would contain it.
func asJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// markdown writes documentation as Markdown. It escapes all text from the commit.
func (d documentation) markdown(w io.Writer) error {
	var b strings.Builder
	say := func(format string, args ...any) {
		for i, arg := range args {
			args[i] = escaped(fmt.Sprint(arg))
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	say("# %s\n\n%s, %s", d.Name, d.Of, strings.ToLower(d.Scope))
	if p := d.Package; p != nil {
		say("\nPackage %s in %s", p.Name, p.Directory)
	}
	say("\nDeclared at %s\n", d.Origin)
	for _, v := range d.Versions {
		say("- %s", versionLine(v))
	}
	if len(d.ConnectionDetails) > 0 {
		say("\n## Connection details\n\n| key | |\n|---|---|")
	}
	for _, detail := range d.ConnectionDetails {
		say("| %s | %s |", detail.Name, detail.Description)
	}
	say("\n## %s\n", strings.TrimSpace(d.Version+" "+d.Path))
	if d.Path == "" && d.Field.Description != "" {
		say("%s\n", d.Field.Description)
	}
	say("| field | type | |\n|---|---|---|")
	var rows func(f crd.Field, path string)
	rows = func(f crd.Field, path string) {
		if path != "" {
			var about []string
			if f.Description != "" {
				about = append(about, f.Description)
			}
			about = append(about, limits(f)...)
			if f.Below > 0 {
				about = append(about, "… "+manifest.Count(f.Below, "field")+" below")
			}
			for i, line := range about {
				about[i] = escaped(line)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", escaped(path), escaped(strings.Join(traits(f), ", ")), strings.Join(about, "<br>"))
			path += "."
		}
		for _, below := range f.Fields {
			rows(below, path+below.Name)
		}
	}
	rows(d.Field, d.Path)
	_, err := io.WriteString(w, b.String())
	return err
}

// escaped returns text that Markdown and HTML show literally, on one line.
func escaped(s string) string {
	return markup.Replace(strings.Join(strings.Fields(printable(s)), " "))
}

var markup = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`,
)
