plugins {
    alias(libs.plugins.android.application)
}

android {
    namespace = "litenmt.app"
    compileSdk = libs.versions.targetSdk.get().toInt()

    defaultConfig {
        minSdk = libs.versions.minSdk.get().toInt()
        targetSdk = libs.versions.targetSdk.get().toInt()
        versionCode = libs.versions.code.get().toInt()
        versionName = libs.versions.name.get()
    }

    // One APK for each: a phone needs one of them alone.
    splits {
        abi {
            isEnable = true
            reset()
            include("arm64-v8a", "x86_64")
        }
    }

    androidResources {
        noCompress += listOf("onnx", "bin", "spm")
    }

    packaging {
        jniLibs.useLegacyPackaging = true // compressed, as `make android` has them
    }

    testOptions {
        unitTests.all { it.systemProperty("litenmt.bundle", file("src/main/assets/bundle").path) }
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
}

dependencies {
    implementation(project(":translator"))
    implementation(libs.onnxruntime.android)
    testImplementation(libs.junit)
    testImplementation(libs.onnxruntime)
}
