// Reads arbitrary bytes as a campaign. What can be read is written as text that reads back as the
// same.
#include "trocar/campaign_file.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trocar/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    trocar::CampaignFile campaign;
    try {
        campaign = trocar::parse_campaign(text, "campaign.yaml");
    } catch (const trocar::Error& e) {
        if (e.fault() != trocar::Fault::input) {
            std::abort();
        }
        return 0;
    }
    const auto once = trocar::campaign_text(campaign);
    const auto again = trocar::parse_campaign(once, "campaign.yaml");
    if (trocar::campaign_text(again) != once ||
        trocar::canonical_text(again) != trocar::canonical_text(campaign)) {
        std::abort();
    }
    return 0;
}
