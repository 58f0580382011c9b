// Package kubernetes tests the examples for Kubernetes in ops/kubernetes. It is a module of its own because it depends
// on Kubernetes' types.
package kubernetes
