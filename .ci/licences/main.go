// Command licences checks that the licence of every module in a program allows its distribution under Apache-2.0, and writes
// NOTICE: the licences, and the notices that section 4(d) of Apache-2.0 requires in a distribution.
//
//	licences [-write] NOTICE ./cmd/headgate
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences, by SPDX identifier, that a program under Apache-2.0 may contain. MPL-2.0 applies to single files,
// which Headgate does not change.
var allowed = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "MPL-2.0", "Unlicense", "CC0-1.0", "Zlib"}

// least is the minimum share of a file, in per cent, that must be licence text. Copyright lines and headings are the rest.
const least = 50

const heading = `Headgate
Copyright The Headgate Authors

This product is licensed under the Apache License, Version 2.0; see LICENSE. ` + "`make notice`" + ` writes this file.

It contains these modules:

`

// data names what Headgate contains of the content of modules that are not part of the program.
const data = `
It contains the schemas of the CRDs in cluster/crds of github.com/crossplane/crossplane/v2, releases v2.0.0 to v2.4.0, without
descriptions, in render/crossplane/kinds: Apache-2.0
`

func main() {
	write := flag.Bool("write", false, "write the file instead of comparing it")
	flag.Parse()
	if err := run(*write, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(write bool, file, program string) error {
	modules, err := modulesOf(program)
	if err != nil {
		return err
	}
	text, err := notice(modules)
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(file, []byte(text), 0o644)
	}
	is, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(is) != text {
		return fmt.Errorf("%s is out of date; run make notice and read its diff", file)
	}
	_, err = fmt.Fprintf(os.Stdout, "licences of %d modules are allowed\n", len(modules))
	return err
}

// A module contributes packages to a program.
type module struct{ Path, Version, Dir string }

// modulesOf returns the modules that a program contains, sorted by path, without its main module.
func modulesOf(program string) ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", program)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]module{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			Module *struct {
				module
				Main    bool
				Replace *module
			}
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if m := pkg.Module; m != nil && !m.Main {
			if m.Replace != nil {
				m.Version, m.Dir = m.Replace.Version, m.Replace.Dir
			}
			found[m.Path] = m.module
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s contains no module", program)
	}
	return slices.SortedFunc(maps.Values(found), func(a, b module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// notice returns the text of NOTICE, or an error that names every module without an allowed licence.
func notice(modules []module) (string, error) {
	var list, texts strings.Builder
	var refused []error
	for _, m := range modules {
		ids, err := licencesOf(m.Dir)
		if err != nil {
			refused = append(refused, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
			continue
		}
		fmt.Fprintf(&list, "%s %s: %s\n", m.Path, m.Version, strings.Join(ids, ", "))
		own, err := read(m.Dir, regexp.MustCompile(`(?i)^NOTICE(\.txt|\.md)?$`))
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(own)) {
			text := own[name]
			fmt.Fprintf(&texts, "\n%s\n%s\n\n%s\n", m.Path, strings.Repeat("-", len(m.Path)), strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")))
		}
	}
	return heading + list.String() + data + "\nTheir notices:\n" + texts.String(), errors.Join(refused...)
}

// licencesOf returns the licences of a module, recognised by the texts in its directory. More than one may apply.
func licencesOf(dir string) ([]string, error) {
	files, err := read(dir, regexp.MustCompile(`(?i)^(LICEN[CS]E|COPYING|UNLICENSE)([.-](txt|md|MIT|BSD|Apache.*))?$`)) // not of documentation
	if err != nil {
		return nil, err
	}
	var ids []string
	for name, text := range files {
		found := licensecheck.Scan([]byte(text))
		if found.Percent < least {
			return nil, fmt.Errorf("%s is not a known licence; read it, and remove the module if it is not allowed", name)
		}
		for _, m := range found.Match {
			if !slices.Contains(allowed, m.ID) {
				return nil, fmt.Errorf("%s is under %s, which is not allowed; remove the module", name, m.ID)
			}
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("it has no licence; remove the module")
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// read returns the files of a directory whose names match, by name.
func read(dir string, names *regexp.Regexp) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.Type().IsRegular() && names.MatchString(e.Name()) {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			files[e.Name()] = string(data)
		}
	}
	return files, nil
}
