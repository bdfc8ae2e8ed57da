package forge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Workflow is a run of a forge's CI, as its environment describes it.
type Workflow struct {
	Kind   Kind
	Server string // URL of the forge
	Name   string // of the repository there, as "owner/name"
	Pull   int    // 0: it is of no pull request
	Base   string // the target of the pull request, as the clone has it
	Head   string // the commit of the pull request for which the forge started the run; or empty
	Token  string

	Run string // URL of its page

	Fork    bool   // the pull request comes from a fork, as far as the environment shows it
	Summary string // a file whose Markdown the page of the run shows
}

// A pipeline describes the CI of a forge.
type pipeline struct {
	name  string // for people
	also  string // another product with the same environment
	token string // the variable that people put a token in
	// read returns the run that an environment describes, and reports whether it is one of this forge.
	read func(env func(string) string) (Workflow, bool)
}

// WorkflowOf returns the run that an environment describes; its fields are empty outside of one.
func WorkflowOf(env func(string) string) Workflow {
	for _, f := range forges {
		if f.pipeline.read == nil {
			continue
		}
		if w, ok := f.pipeline.read(env); ok {
			w.Kind, w.Token = f.Kind, cmp.Or(env(f.pipeline.token), w.Token)
			return w
		}
	}
	return Workflow{}
}

// Pipelines returns the names of all CI systems that WorkflowOf knows, and the variables that it reads a
// token from. Both are sorted.
func Pipelines() (names, tokens []string) {
	for _, f := range forges {
		if f.pipeline.read == nil {
			continue
		}
		names, tokens = append(names, f.pipeline.name), append(tokens, f.pipeline.token)
		if f.pipeline.also != "" {
			names = append(names, f.pipeline.also)
		}
	}
	sortNames(names)
	slices.Sort(tokens)
	return names, tokens
}

func sortNames(names []string) {
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

// pullNumber reads the number of a pull request; 0 if the text is none.
func pullNumber(s string) int {
	n, _ := strconv.Atoi(s)
	return max(n, 0)
}

// Superseded reports whether a pull request has another head now than the one that a run, or a repeated run, is of. clone is the
// commit that the run has checked out: it may have pushed that commit itself.
func (w Workflow) Superseded(now Pull, clone string) bool {
	return w.Head != "" && !strings.HasPrefix(now.Head, w.Head) && now.Head != clone
}

// remoteBranch returns a branch as a clone has it, or "".
func remoteBranch(branch string) string {
	if branch == "" {
		return ""
	}
	return "origin/" + strings.TrimPrefix(branch, "refs/heads/")
}
