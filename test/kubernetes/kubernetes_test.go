package kubernetes_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/seed-a3166700/turnstile/server"
)

// objects returns the objects of all examples, decoded strictly: a field that Kubernetes does not know is an error.
func objects(t *testing.T) []metav1.Object {
	t.Helper()
	files, err := filepath.Glob("../../ops/kubernetes/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	var all []metav1.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal(part, &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			var object metav1.Object
			switch kind.APIVersion + " " + kind.Kind {
			case "apps/v1 StatefulSet":
				object = new(appsv1.StatefulSet)
			case "apps/v1 Deployment":
				object = new(appsv1.Deployment)
			case "v1 Service":
				object = new(corev1.Service)
			case "networking.k8s.io/v1 NetworkPolicy":
				object = new(networkingv1.NetworkPolicy)
			default:
				t.Fatalf("%s: unknown kind %v", file, kind)
			}
			if err := yaml.UnmarshalStrict(part, object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, object)
		}
	}
	return all
}

// templates returns the pods' templates by the names of what makes the pods, with the selectors for them.
func templates(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	all := make(map[string]corev1.PodTemplateSpec)
	for _, object := range objects(t) {
		var selector *metav1.LabelSelector
		switch o := object.(type) {
		case *appsv1.StatefulSet:
			all[o.Name], selector = o.Spec.Template, o.Spec.Selector
		case *appsv1.Deployment:
			all[o.Name], selector = o.Spec.Template, o.Spec.Selector
		default:
			continue
		}
		wantSelected(t, object.GetName(), selector.MatchLabels, all[object.GetName()])
	}
	if len(all) != 2 {
		t.Fatalf("got %d templates", len(all))
	}
	return all
}

func wantSelected(t *testing.T, name string, selector map[string]string, pod corev1.PodTemplateSpec) {
	t.Helper()
	for key, value := range selector {
		if pod.Labels[key] != value {
			t.Errorf("%s selects %s=%s, and the pod has %q", name, key, value, pod.Labels[key])
		}
	}
}

func TestServicesReachTheirPods(t *testing.T) {
	t.Parallel()
	pods := templates(t)
	serverPod, clientPod := pods["turnstile"], pods["report"]
	ports := make(map[string]bool)
	for _, port := range serverPod.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	address := ""
	for _, object := range objects(t) {
		switch o := object.(type) {
		case *corev1.Service:
			wantSelected(t, "service", o.Spec.Selector, serverPod)
			for _, port := range o.Spec.Ports {
				if !ports[port.TargetPort.String()] {
					t.Errorf("the service has port %s, and the pod has not", port.TargetPort.String())
				}
			}
			address = fmt.Sprintf("%s:%d", o.Name, o.Spec.Ports[0].Port)
		case *networkingv1.NetworkPolicy:
			wantSelected(t, "policy", o.Spec.PodSelector.MatchLabels, serverPod)
			wantSelected(t, "policy's clients", o.Spec.Ingress[0].From[0].PodSelector.MatchLabels, clientPod)
			for _, rule := range o.Spec.Ingress {
				if !ports[rule.Ports[0].Port.String()] {
					t.Errorf("the policy opens port %s, and the pod has none", rule.Ports[0].Port.String())
				}
			}
		case *appsv1.StatefulSet:
			if *o.Spec.Replicas != 1 {
				t.Errorf("got %d replicas: each would be a server of its own", *o.Spec.Replicas)
			}
			if mounts := o.Spec.Template.Spec.Containers[0].VolumeMounts; len(o.Spec.VolumeClaimTemplates) != 1 ||
				o.Spec.VolumeClaimTemplates[0].Name != mounts[0].Name {
				t.Error("the pod mounts no claim")
			}
		}
	}
	if args := clientPod.Spec.Containers[0].Args; !slices.Contains(args, address) {
		t.Errorf("the client connects to another address than the service's %s: %q", address, args)
	}
}

// The checks of Kubernetes' "restricted" standard that concern these pods.
func TestPodsAreConfined(t *testing.T) {
	t.Parallel()
	for name, pod := range templates(t) {
		if s := pod.Spec.SecurityContext; s == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: got %+v", name, s)
		}
		if *pod.Spec.AutomountServiceAccountToken || *pod.Spec.EnableServiceLinks {
			t.Errorf("%s has a token, or variables of services", name)
		}
		for _, c := range pod.Spec.Containers {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
				!slices.Contains(s.Capabilities.Drop, "ALL") {
				t.Errorf("%s: got %+v", name, s)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: got %+v", name, c.Resources)
			}
		}
	}
}

// A server at the probes' port answers each of them.
func TestProbesAskWhatTheServerAnswers(t *testing.T) {
	t.Parallel()
	container := templates(t)["turnstile"].Spec.Containers[0]
	args := strings.Join(container.Args, " ")
	srv, err := server.Start(t.Context(), server.Config{
		InMemory: true, Listen: []string{"127.0.0.1:0"}, MetricsListen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for name, probe := range map[string]*corev1.Probe{
		"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
	} {
		i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == probe.HTTPGet.Port.String()
		})
		if i < 0 || !strings.Contains(args, fmt.Sprintf("--metrics-listen :%d", container.Ports[i].ContainerPort)) {
			t.Errorf("%s: %s is not the port of the metrics in %s", name, probe.HTTPGet.Port.String(), args)
		}
		url := "http://" + srv.MetricsAddr().String() + probe.HTTPGet.Path
		if got := status(t.Context(), t, url); got != http.StatusOK {
			t.Errorf("%s: got %d for %s", name, got, probe.HTTPGet.Path)
		}
	}
}

func status(ctx context.Context, t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
