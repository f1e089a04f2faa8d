#include "hubferry/migration/resource.hpp"

namespace hubferry::migration {

const kube::Resource managed_cluster_migrations{"global-hub.open-cluster-management.io", "v1alpha1",
                                                "managedclustermigrations", "ManagedClusterMigration"};

}  // namespace hubferry::migration
