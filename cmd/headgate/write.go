package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"unicode/utf16"

	"go.yaml.in/yaml/v2"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"headgate.dev/headgate/reconcile/legible"
)

// A form describes how to write a sequence of objects, with sorted keys.
type form struct {
	head, before, between, tail string
	encode                      func(any) ([]byte, error)
}

var (
	// yaml.Marshal encodes the map directly. The usual conversion through JSON parses it once more.
	yamlStream = form{before: "---\n", encode: yaml.Marshal}
	jsonList   = form{head: `{"apiVersion":"v1","kind":"List","items":[` + "\n", between: ",\n", tail: "\n]}\n", encode: escapedJSON}
)

// escapedJSON returns a value as JSON that cannot manipulate a terminal. The value stays the same, because a user applies it: control
// characters and invisible ones are escaped.
func escapedJSON(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil || !bytes.ContainsFunc(plain, legible.Invisible) {
		return plain, err
	}
	var b bytes.Buffer
	for _, r := range string(plain) {
		if !legible.Invisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes(), nil
}

// write writes n objects. It requests only a few of them at a time.
func (f form) write(w io.Writer, n int, object func(i int) (*unstructured.Unstructured, error)) error {
	return f.writeTexts(w, n, func(i int) (string, error) {
		u, err := object(i)
		if err != nil {
			return "", err
		}
		return f.encoded(u)
	})
}

// writeTexts writes n encoded objects.
func (f form) writeTexts(w io.Writer, n int, encoded func(i int) (string, error)) error {
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprint(out, f.head)
	err := inOrder(n, encoded, func(i int, text string) error {
		if i > 0 {
			fmt.Fprint(out, f.between)
		}
		fmt.Fprint(out, f.before)
		_, err := out.WriteString(text) // a buffered writer keeps its first error until Flush
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprint(out, f.tail)
	return out.Flush()
}

func (f form) encoded(u *unstructured.Unstructured) (string, error) {
	b, err := f.encode(u.Object)
	if err != nil {
		return "", fmt.Errorf("cannot write %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return string(b), nil
}

// inOrder produces n texts, as many at the same time as there are processors, and uses them in order. It holds only a few of them
// in memory.
func inOrder(n int, produce func(i int) (string, error), use func(i int, text string) error) error {
	window := 4 * runtime.GOMAXPROCS(0)
	made := make([]string, window)
	for begin := 0; begin < n; begin += window {
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		end := min(begin+window, n)
		for i := begin; i < end; i++ {
			g.Go(func() (err error) {
				made[i-begin], err = produce(i)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i := begin; i < end; i++ {
			if err := use(i, made[i-begin]); err != nil {
				return err
			}
		}
	}
	return nil
}
