package target

import (
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
)

var kinds = map[v1alpha1.Forge]forge.Kind{
	v1alpha1.ForgeGitHub:              forge.KindGitHub,
	v1alpha1.ForgeGitLab:              forge.KindGitLab,
	v1alpha1.ForgeGitea:               forge.KindGitea,
	v1alpha1.ForgeForgejo:             forge.KindGitea,
	v1alpha1.ForgeBitbucket:           forge.KindBitbucket,
	v1alpha1.ForgeBitbucketDataCenter: forge.KindBitbucketDataCenter,
	v1alpha1.ForgeAzureDevOps:         forge.KindAzureDevOps,
}
