package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/report"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// A view decides how a verb prints a report.
type view struct {
	format  choice
	full    bool
	command *cobra.Command
}

// withAnnotations adds the formats in which forges and editors show findings next to lines of code.
func withAnnotations(formats ...string) choice {
	return oneOf(append(formats, slices.Sorted(maps.Keys(annotators()))...)...)
}

// annotators returns the writers of the formats that withAnnotations adds.
func annotators() map[string]func(io.Writer, report.Report) error {
	all := forge.Annotators()
	all["sarif"] = report.SARIF
	return all
}

func newView() *view { return &view{format: withAnnotations("text", "json", "yaml", "markdown")} }

func (v *view) addTo(cmd *cobra.Command) {
	v.command = cmd
	v.format.addTo(cmd, "output", "o", "output format")
	cmd.Flags().BoolVar(&v.full, "full", false, "show every step and every changed field, however many")
}

// concluded prints the report of a pass and returns its exit code as an error.
func (t *terminal) concluded(v *view, done report.Report, err error) error {
	if err := errors.Join(err, t.report(v, done)); err != nil {
		return err
	}
	if code := done.Verdict.ExitCode; code != report.ExitSuccess {
		return exit{code: code}
	}
	return nil
}

// report writes a report to standard output. The error of a pass that stopped goes to standard error, so it is not
// repeated here.
func (t *terminal) report(v *view, r report.Report) error {
	t.progress.Stop()
	if text := v.unfit(r); text != "" {
		t.warn("%s", text)
	}
	t.summarise(r)
	switch v.format.value {
	case "json":
		return report.JSON(t.out, r)
	case "yaml":
		return t.yaml(r)
	case "markdown":
		return report.Markdown(t.out, r)
	}
	if annotate, ok := annotators()[v.format.value]; ok {
		return annotate(t.out, r)
	}
	return report.Text{Colour: t.coloured(t.outTTY()), Full: v.full, Apart: true}.Write(t.out, r)
}

// unfit returns a text if digests of --approve let nothing of a report pass.
func (v *view) unfit(r report.Report) string {
	flag := v.command.Flags().Lookup("approve")
	if flag == nil || len(r.Used()) > 0 || r.Error != "" {
		return ""
	}
	given, _ := flag.Value.(*approveFlag)
	if given == nil || len(*given) == 0 {
		return ""
	}
	why := "nothing here waits for an approval"
	switch {
	case r.Approval != nil && r.Preview != nil:
		why = "a comparison counts the approvals of the target, and this one asks for " + r.Approval.Digest
	case r.Approval != nil:
		why = "what is held has the digest " + r.Approval.Digest
	}
	return fmt.Sprintf("--approve %s lets nothing pass: %s", given, why)
}

// mostSummary is the maximum size of a summary on GitHub, in bytes.
const mostSummary = 1 << 20

// summarise adds a report to the page of the workflow that runs the program, if the workflow has one. The page is optional: a
// failure to write it does not fail the verb.
func (t *terminal) summarise(r report.Report) {
	name := forge.WorkflowOf(t.getenv).Summary
	if name == "" {
		return
	}
	err := func() (err error) {
		file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		var page strings.Builder
		if r.Judgement.Word != "" {
			page.WriteString(report.Comment(r, int(mostSummary-info.Size())))
		} else if err := report.Markdown(&page, r); err != nil {
			return err
		}
		if info.Size()+int64(page.Len()) >= mostSummary {
			return errors.New("the report is too long for it")
		}
		_, err = file.WriteString(page.String() + "\n")
		return err
	}()
	if err != nil {
		slog.Warn("the report is missing from the summary of the workflow", "err", err)
	}
}

// outTTY reports whether standard output is a terminal.
func (t *terminal) outTTY() bool {
	f, ok := t.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (t *terminal) json(v any) error {
	return report.WriteJSON(t.out, v)
}

func (t *terminal) yaml(v any) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(t.out, printable(string(b)))
	return err
}

var _ io.Writer = (*progress)(nil)
