package report

import (
	"regexp"
	"strings"
)

// terms are words in a comment that newcomers to Crossplane or Headgate may not know. A comment that uses one also explains it.
var terms = []struct {
	used *regexp.Regexp
	text string
}{
	{
		regexp.MustCompile(`(?i)\b(in)?active\b|\bactivates?\b|\bdefinitions?\b`),
		"A **definition** (ManagedResourceDefinition) is a type of managed resource. An **active** definition has a CRD in the cluster, " +
			"which takes memory of the API server; an inactive one has none. Crossplane cannot make a definition inactive again.",
	},
	{
		regexp.MustCompile(`(?i)\bpolic(y|ies)\b|\bpatterns?\b`),
		"A **policy** (ManagedResourceActivationPolicy) activates each definition whose name matches one of its patterns, now and later.",
	},
	{
		regexp.MustCompile(`(?i)\bbreaks?\b`),
		"A schema **breaks** if it rejects or drops something that it accepts now.",
	},
	{
		regexp.MustCompile(`(?i)\bconversion webhook|\bconverts?\b|\bstores?\b|\bstored\b`),
		"The API server **stores** each object in one version of its kind and converts it to the other versions: with a **conversion " +
			"webhook** of the provider, or else by changing only the version, so that fields which the other version lacks are lost.",
	},
	{
		regexp.MustCompile(`(?i)\bdeprecate[sd]?\b`),
		"A **deprecated** version still works. The API server warns clients that use it, and a later release may remove it.",
	},
	{
		regexp.MustCompile(`(?i)\bholds?\b|\bheld\b`),
		"Headgate does not make a change that it **holds** until the commit changes, the obstacle is gone, or a person approves exactly this change.",
	},
	{
		regexp.MustCompile(`(?i)\bprunes?\b`),
		"To **prune** an object is to delete it because the commit no longer declares it.",
	},
	{
		regexp.MustCompile(`(?i)\bdrops?\b`),
		"A package **drops** a kind if its new version no longer contains it. Crossplane then leaves the CRD and its objects without a controller.",
	},
	{
		regexp.MustCompile(`(?i)\bfindings?\b|\badds [0-9,]+ warnings?\b`),
		"A **finding** is a mistake in the commit, or something that looks like one. `headgate lint` lists all of them.",
	},
}

// quotedText matches links, and texts from commits, which are quoted as code.
var quotedText = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")

// glossaryOf returns a folded section that explains the terms in the visible part of a comment.
func glossaryOf(visible string) string {
	plain := quotedText.ReplaceAllString(visible, "")
	var used []string
	for _, term := range terms {
		if term.used.MatchString(plain) {
			used = append(used, term.text)
		}
	}
	if len(used) == 0 {
		return ""
	}
	return "\n<details><summary>What these words mean</summary>\n\n- " + strings.Join(used, "\n- ") + "\n\n</details>\n"
}
