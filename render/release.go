package render

import (
	"fmt"
	"regexp"
	"strconv"
)

var releases = regexp.MustCompile(`^v?1\.([1-9][0-9]{0,2})(\.[0-9]+)?([+-].*)?$`)

// KubernetesMinor returns the minor release of a version of Kubernetes: 34 of 1.34, v1.34.2 and v1.34.2+k3s1. It returns 0 for "".
func KubernetesMinor(version string) (int, error) {
	if version == "" {
		return 0, nil
	}
	m := releases.FindStringSubmatch(version)
	if m == nil {
		return 0, fmt.Errorf("kubernetesVersion must be a release of Kubernetes, such as 1.34, not %q", version)
	}
	return strconv.Atoi(m[1])
}
