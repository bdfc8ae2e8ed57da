package main

import (
	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
)

// limitFlags are the flags for the limits of reading a commit.
type limitFlags map[string]string

func (f *limitFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar((*map[string]string)(f), "limits", nil, "`what=limit` of a commit: fileSize=16Mi, totalSize=1Gi, documents=100000, depth=200, nodes=200000, totalNodes=8000000")
}

// into copies the limits of the flag to a Sync's limits.
func (f limitFlags) into(l *v1alpha1.Limits) error {
	for what, limit := range f {
		n, err := resource.ParseQuantity(limit)
		if err != nil || n.Value() < 1 {
			return usagef("--limits: %s=%s is not a limit; write one as fileSize=16Mi", what, limit)
		}
		switch what {
		case "fileSize":
			l.FileSize = v1alpha1.Size(limit)
		case "totalSize":
			l.TotalSize = v1alpha1.Size(limit)
		case "documents":
			l.Documents = int(n.Value())
		case "depth":
			l.Depth = int(n.Value())
		case "nodes":
			l.Nodes = int(n.Value())
		case "totalNodes":
			l.TotalNodes = int(n.Value())
		default:
			return usagef("--limits: there are fileSize, totalSize, documents, depth, nodes and totalNodes, and no %s", what)
		}
	}
	if err := l.Validate(); err != nil {
		return usagef("--limits: %w", err)
	}
	return nil
}
