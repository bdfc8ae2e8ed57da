package facts

import (
	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/cli-utils/pkg/object"
)

// AsWritten returns the ID of an object in the commit's spelling.
func (o Ground) AsWritten(id manifest.ID) manifest.ID {
	if written, differs := o.Written[id]; differs {
		return written
	}
	return id
}

// IDOf returns the ID of an object in a list of dependencies.
func IDOf(meta object.ObjMetadata) manifest.ID {
	return manifest.ID{Group: meta.GroupKind.Group, Kind: meta.GroupKind.Kind, Namespace: meta.Namespace, Name: meta.Name}
}
