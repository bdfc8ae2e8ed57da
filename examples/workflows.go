// Package examples holds the CI files of the examples, for 'headgate init', and the admission policy that the controller expects. Its tests run every example, so that they cannot rot.
package examples

import "embed"

var (
	//go:embed github-actions/headgate.yaml
	gitHubWorkflow string
	//go:embed gitea-actions/headgate.yaml
	giteaWorkflow string
	//go:embed gitlab-ci/.gitlab-ci.yml
	gitLabPipeline string
)

// CI holds the CI files that users copy, and that 'headgate init' proposes, by the path to which they are copied.
var CI = map[string]string{
	".github/workflows/headgate.yaml": gitHubWorkflow,
	".gitea/workflows/headgate.yaml":  giteaWorkflow,
	".gitlab-ci.yml":                  gitLabPipeline,
}

// Approvals is the admission policy, with its binding, that protects approvals on Sync objects.
//
//go:embed controller/approvals.yaml
var Approvals string

// Manifests are the files of which 'headgate install' makes the objects of an installation.
//
//go:embed controller/*.yaml controller/crds/*.yaml run/rights-crossplane.yaml run/rights-headgate.yaml run/base/*.yaml observe/rbac.yaml
var Manifests embed.FS
